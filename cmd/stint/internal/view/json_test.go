package view_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stintgo/stint/cmd/stint/internal/view"
	"github.com/stintgo/stint/queue"
)

// A task in JSON has its command as fields, its exit status, and values that are JSON as
// JSON. Programs read this: the fields in this test keep their names and meanings.
func TestC4_TasksAsJSON(t *testing.T) {
	id := queue.ID{15: 1}
	at := noon.UTC()
	for _, row := range []struct {
		name   string
		task   queue.Task
		reveal bool
		want   string
	}{
		{
			name: "a script that failed",
			task: queue.Task{
				ID: id, State: queue.Dead, Failures: 1, Error: "exit status 3", Submitted: at, Changed: at,
				Spec: queue.Spec{
					Kind:    "command",
					Payload: []byte(`{"args":["sh","-c","a && b > c"],"dir":"/d","env":["TOKEN=secret"],"stdin":"AAEC"}`),
					Options: queue.Options{
						Queue:       "default",
						MaxAttempts: 1,
					},
				},
				Checkpoint: []byte(`{"status":3,"output_bytes":7}`),
				Steps:      []queue.Step{{At: at, On: queue.OnSubmit, To: queue.Waiting}},
			},
			want: `{
				"id": "00000000-0000-0000-0000-000000000001", "queue": "default", "kind": "command", "max_attempts": 1,
				"command": {"script": "a && b > c", "dir": "/d", "env": ["TOKEN"], "stdin_bytes": 3},
				"state": "dead", "failures": 1, "error": "exit status 3",
				"exit_status": 3, "exit": {"status": 3, "output_bytes": 7},
				"submitted": "2026-11-20T12:00:00Z", "changed": "2026-11-20T12:00:00Z",
				"steps": [{"at": "2026-11-20T12:00:00Z", "on": "submit", "to": "waiting"}]
			}`,
		},
		{
			name: "words, revealed",
			task: queue.Task{
				ID: id, State: queue.Succeeded, Submitted: at, Changed: at,
				Spec: queue.Spec{
					Kind:    "command",
					Payload: []byte(`{"args":["cat","-n"],"env":["TOKEN=secret"],"stdin":"AAEC"}`),
					Options: queue.Options{
						Queue: "default",
					},
				},
				Result: []byte(`{"status":0,"output_bytes":7}`),
			},
			reveal: true,
			want: `{
				"id": "00000000-0000-0000-0000-000000000001", "queue": "default", "kind": "command",
				"command": {"args": ["cat", "-n"], "env": ["TOKEN=secret"], "stdin_bytes": 3, "stdin_base64": "AAEC"},
				"state": "succeeded", "exit_status": 0, "exit": {"status": 0, "output_bytes": 7},
				"submitted": "2026-11-20T12:00:00Z", "changed": "2026-11-20T12:00:00Z", "steps": null
			}`,
		},
		{
			name: "JSON of another kind",
			task: queue.Task{
				ID: id, State: queue.Waiting, Submitted: at, Changed: at,
				Spec: queue.Spec{
					Kind: "email", Payload: []byte(`{"to":"x", "n": 12345678901234567890}`),
					Options: queue.Options{Queue: "default"},
				},
				Checkpoint: []byte(`[1]`), Result: []byte(`"sent"`),
			},
			want: `{
				"id": "00000000-0000-0000-0000-000000000001", "queue": "default", "kind": "email",
				"payload": {"to": "x", "n": 12345678901234567890}, "checkpoint": [1], "result": "sent",
				"state": "waiting",
				"submitted": "2026-11-20T12:00:00Z", "changed": "2026-11-20T12:00:00Z", "steps": null
			}`,
		},
		{
			name: "no JSON",
			task: queue.Task{
				ID: id, State: queue.Waiting, Submitted: at, Changed: at,
				Spec:       queue.Spec{Kind: "email", Payload: []byte("\x00\x01"), Options: queue.Options{Queue: "default"}},
				Checkpoint: []byte("{"), Result: []byte("\"\xff\""),
			},
			want: `{
				"id": "00000000-0000-0000-0000-000000000001", "queue": "default", "kind": "email",
				"payload_base64": "AAE=", "checkpoint_base64": "ew==", "result_base64": "Iv8i",
				"state": "waiting",
				"submitted": "2026-11-20T12:00:00Z", "changed": "2026-11-20T12:00:00Z", "steps": null
			}`,
		},
		{
			name: "a command that cannot be read",
			task: queue.Task{
				ID: id, State: queue.Waiting, Submitted: at, Changed: at,
				Spec: queue.Spec{Kind: "command", Payload: []byte(`"x"`), Options: queue.Options{Queue: "default"}},
			},
			want: `{
				"id": "00000000-0000-0000-0000-000000000001", "queue": "default", "kind": "command", "payload": "x",
				"state": "waiting",
				"submitted": "2026-11-20T12:00:00Z", "changed": "2026-11-20T12:00:00Z", "steps": null
			}`,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := json.Marshal(view.TaskJSON(&row.task, row.reveal))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(fields(t, got), fields(t, []byte(row.want))) {
				t.Errorf("its JSON is\n%s, want\n%s", got, row.want)
			}
		})
	}
}

// fields decodes an object, with its numbers as text.
func fields(t *testing.T, text []byte) (object map[string]any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return object
}
