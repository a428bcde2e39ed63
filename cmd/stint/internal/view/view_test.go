package view_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/cmd/stint/internal/view"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/shm"
	"github.com/stintgo/stint/transfer"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.Local)

// Each reason is a sentence with what a user needs to know in order to act.
func TestReason(t *testing.T) {
	id := queue.ID{15: 1}
	for _, row := range []struct {
		reason queue.Reason
		want   string
	}{
		{
			queue.Reason{Reason: stint.Reason{Code: queue.CodeTaskPaused, By: "me: lunch", Since: noon.Add(-time.Hour)}},
			"it was paused (me: lunch) 1h0m ago: stint resume with its ID lets it start",
		},
		{
			queue.Reason{Reason: stint.Reason{Code: stint.Code(queue.HoldQueuePaused)}, What: "nightly"},
			"its queue was paused: stint resume --queue nightly resumes it",
		},
		{
			queue.Reason{
				Reason: stint.Reason{Code: stint.Code(queue.HoldQueuePaused), By: "me", Since: noon.Add(-time.Hour)},
				What:   "nightly", SetBy: queue.Origin{Default: true},
			},
			"all queues were paused (me) 1h0m ago: stint resume --all resumes them",
		},
		{
			queue.Reason{Reason: stint.Reason{Code: queue.CodeScheduled}, Until: noon.Add(90 * time.Second)},
			"it is not to start before 2026-11-20 12:01:30.000, in 1m30s",
		},
		{
			queue.Reason{Reason: stint.Reason{Code: queue.CodeScheduled}, Until: noon.Add(2 * time.Second), Failures: 2},
			"it has failed 2 times and is tried again in 2.0s, at 2026-11-20 12:00:02.000",
		},
		{
			queue.Reason{Reason: stint.Reason{Code: queue.CodeScheduled}, Until: noon.Add(2 * time.Second), Failures: 1},
			"it has failed 1 time and is tried again in 2.0s, at 2026-11-20 12:00:02.000",
		},
		{
			queue.Reason{Reason: stint.Reason{Code: stint.Code(queue.HoldDependency)}, What: id.String(), State: queue.Dead},
			"it waits for task 00000000-0000-0000-0000-000000000001, which is dead",
		},
		{
			queue.Reason{Reason: stint.Reason{Code: stint.Code(queue.HoldDependency)}, What: "B"},
			"it waits for the end of batch B",
		},
		{
			queue.Reason{Reason: stint.Reason{Code: stint.Code(queue.HoldForgotten)}, What: id.String()},
			"task 00000000-0000-0000-0000-000000000001, which had to succeed first, was forgotten: this one will be cancelled",
		},
		{
			queue.Reason{Reason: stint.Reason{Code: stint.Code(queue.HoldGroup)}, What: "g\x1b[2J"},
			"it waits for its turn in group g?[2J",
		},
		{
			queue.Reason{Reason: stint.Reason{Code: stint.CodeKey, Key: "k", Limit: 1, Running: 1}, Holders: []queue.ID{id}},
			"key k is at its limit: 1 of 1 run: 00000000-0000-0000-0000-000000000001",
		},
		{
			queue.Reason{Reason: stint.Reason{Code: stint.Code(queue.HoldKeyRate), Key: "k"}, Until: noon},
			"its key k has used up its rate, until 2026-11-20 12:00:00.000",
		},
		{
			queue.Reason{Reason: stint.Reason{Code: stint.Code(queue.HoldDamaged)}, What: "bad block"},
			"it cannot be read: check the disk, or restore the store from a copy (bad block)",
		},
		{
			queue.Reason{Reason: stint.Reason{Code: queue.CodeNoWorker}, What: "email"},
			"no worker handles kind email in its queue; none ever has",
		},
		{
			queue.Reason{
				Reason: stint.Reason{Code: queue.CodeNoWorker}, What: "email",
				LastSeen: queue.Seen{Worker: "w", At: noon.Add(-25 * time.Hour)},
			},
			"no worker handles kind email in its queue; the last one was w, 1d1h ago",
		},
		{
			queue.Reason{Reason: stint.Reason{Code: stint.CodeMax, Limit: 3, Running: 3}},
			"its queue is at its limit: 3 of 3 run",
		},
		{
			queue.Reason{
				Reason: stint.Reason{Code: stint.CodeMax, Limit: 3, Running: 3},
				SetBy:  queue.Origin{Operator: true, By: "ann@host", At: noon.Add(-time.Hour)},
			},
			"its queue is at its limit: 3 of 3 run (set by ann@host 1h0m ago)",
		},
		{
			queue.Reason{
				Reason: stint.Reason{Code: queue.CodeTotal, Limit: 3, Running: 3},
				SetBy:  queue.Origin{By: "importer", Default: true}, Queues: map[string]int{"b": 1, "a": 2},
			},
			"all queues together are at their limit: 3 of 3 run (set by program importer for all queues), " +
				"2 of queue a, 1 of queue b",
		},
		{
			queue.Reason{Reason: stint.Reason{Code: queue.CodeTotal, Limit: 3, Running: 2}},
			"the slots that are free of those for all queues, 1 of 3, are kept for queues that have waited longer",
		},
		{
			queue.Reason{
				Reason: stint.Reason{Code: stint.Code(queue.HoldKeyTotal), Key: "k", Limit: 1, Running: 1},
				Queues: map[string]int{"a": 1},
			},
			"key k is at its limit in all queues together: 1 of 1 run, 1 of queue a",
		},
		{
			queue.Reason{Reason: stint.Reason{Code: stint.CodeCap, Limit: 3, Running: 4}},
			"its tier may start while fewer than 3 tasks of its queue run, and 4 do",
		},
		{
			queue.Reason{Reason: stint.Reason{Code: stint.CodeCap, Limit: 1, Running: 1}},
			"its tier may start while fewer than 1 task of its queue run, and 1 does",
		},
		{
			queue.Reason{Reason: stint.Reason{Code: stint.CodeRate, FreeAt: noon}},
			"its queue has used up its rate, until 2026-11-20 12:00:00.000",
		},
		{
			queue.Reason{Reason: stint.Reason{Code: stint.CodeBehind}},
			"it is next, when a worker has a free slot",
		},
		{
			queue.Reason{Reason: stint.Reason{Code: stint.CodeBehind, Ahead: [stint.Tiers]int{3: 5, 6: 1}}},
			"other tasks go first: 1 of tier highest, 5 of tier normal",
		},
		{
			queue.Reason{Reason: stint.Reason{Code: "new"}, What: "x"},
			`it waits for a reason that this version of stint does not know: "new" (x)`,
		},
		{
			queue.Reason{Reason: stint.Reason{Code: "n\x1bew"}},
			`it waits for a reason that this version of stint does not know: "n\x1bew"`,
		},
	} {
		if got := view.Reason(&row.reason, noon); got != row.want {
			t.Errorf("%s:\n%s, want\n%s", row.reason.Code, got, row.want)
		}
	}
}

// Each code that package queue declares, and each code of package stint that a store reports, has a
// sentence of its own.
func TestReason_OfEachCode(t *testing.T) {
	codes := []stint.Code{
		stint.CodeMax, stint.CodeCap, stint.CodeKey, stint.CodeRate, stint.CodeBehind, stint.CodePaused,
	}
	file, err := parser.ParseFile(token.NewFileSet(), "../../../../queue/why.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			literal, ok := spec.Values[0].(*ast.BasicLit)
			if !ok {
				t.Fatalf("the value of %s is not a literal", spec.Names[0])
			}
			code, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			codes = append(codes, stint.Code(code))
		}
		return true
	})
	if !slices.Contains(codes, stint.Code(queue.HoldDamaged)) || !slices.Contains(codes, queue.CodeTotal) {
		t.Fatalf("codes are missing: %q", codes)
	}
	for _, code := range codes {
		got := view.Reason(&queue.Reason{Reason: stint.Reason{Code: code}}, noon)
		if strings.Contains(got, "does not know") || !strings.Contains(got, " ") {
			t.Errorf("%s has no sentence of its own: %s", code, got)
		}
	}
}

// Foreign text cannot control a terminal or break a table.
func TestTasks_TextOfOthers(t *testing.T) {
	var out strings.Builder
	evil := "a\x1b]0;x\x07\nb\tc\u202e"
	task := queue.Task{
		Spec: queue.Spec{
			Kind: evil, Payload: []byte(strings.Repeat(evil, 100)), Options: queue.Options{Queue: evil, Key: evil},
		},
		State: queue.Dead, Error: evil, Changed: noon,
		Steps: []queue.Step{{At: noon, On: queue.OnFailure, To: queue.Dead, By: evil, Detail: evil}},
	}
	if err := view.Tasks(&out, []queue.Task{task}, true, noon, 0); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "\n"); got != 2 {
		t.Errorf("a table of one task has %d lines:\n%q", got, out.String())
	}
	if err := view.Show(&out, &task, noon, true); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"\x1b", "\x07", "\u202e"} {
		if strings.Contains(out.String(), bad) {
			t.Errorf("it shows %q", bad)
		}
	}
}

// An unknown time is shown as a dash: of a worker that does not report when it started,
// and of a task whose row cannot be read.
func TestC4_UnknownTimes(t *testing.T) {
	var out strings.Builder
	stats := queue.Stats{Workers: []queue.Worker{{Name: "w", Slots: 1}}}
	if err := view.Stats(&out, &stats, noon); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.HasSuffix(got, "\nw       1      -      \n") {
		t.Errorf("stats shows\n%q", got)
	}
	task := queue.Task{State: queue.Held}
	err := errors.Join(view.Tasks(&out, []queue.Task{task}, true, noon, 0), view.Show(&out, &task, noon, false))
	if err != nil {
		t.Fatal(err)
	}
	if got := out.String() + view.State(&task, noon); strings.Contains(got, "106751d") {
		t.Errorf("an unknown time is shown:\n%s", got)
	}
}

// Paused queues are listed with the reason of their pause.
func TestC4_StatsNamePauses(t *testing.T) {
	stats := queue.Stats{Queues: map[string]queue.Counts{"default": {}, "nightly": {}, "urgent": {}}}
	for name, pause := range map[string]queue.Pause{
		"nightly": {By: "ann", Reason: "disk\x1b full", Since: noon.Add(-time.Hour)}, "urgent": {},
	} {
		counts := stats.Queues[name]
		counts.Limits.Paused = &pause
		stats.Queues[name] = counts
	}
	var out strings.Builder
	if err := view.Stats(&out, &stats, noon); err != nil {
		t.Fatal(err)
	}
	const want = "\n\nqueue nightly is paused for 1h0m by ann: disk"
	if got := out.String(); !strings.Contains(got, want) || !strings.Contains(got, "\nqueue urgent is paused\n") ||
		strings.Contains(got, "queue default is paused") || strings.Contains(got, "\x1b") {
		t.Errorf("stats shows\n%q", got)
	}
}

// The values of variables are shown only with reveal.
func TestC4_ShowKeepsSecrets(t *testing.T) {
	task := queue.Task{Spec: queue.Spec{
		Kind: "command", Payload: []byte(`{"args":["env"],"env":["TOKEN=secret","USER=me"],"stdin":"c2VjcmV0"}`),
	}}
	for reveal, want := range map[bool]string{
		false: "environment  TOKEN USER\n", true: "environment  TOKEN=secret USER=me\n",
	} {
		var out strings.Builder
		if err := view.Show(&out, &task, noon, reveal); err != nil {
			t.Fatal(err)
		}
		want += "stdin        6 bytes\n"
		if !strings.Contains(out.String(), want) || strings.Contains(out.String(), "secret") != reveal {
			t.Errorf("revealed %v, it shows\n%s", reveal, out.String())
		}
	}
}

// The password in the URL of an upload is shown only with reveal, and never in a table.
func TestC4_ShowKeepsPasswordsOfUploads(t *testing.T) {
	const location = `"http://me:s%3Acret\u0026@host/files/1"`
	task := queue.Task{
		Spec: queue.Spec{
			Kind:    string(transfer.Kind),
			Payload: []byte(`{"path":"/data/a.tar","to":"http://me:s%3Acret\u0026@host/files/"}`),
		},
		Checkpoint: []byte(`{"parts":[{"url":` + location + `}]}`), Result: []byte(location),
	}
	odd := queue.Task{Spec: queue.Spec{
		Kind: string(transfer.Kind), Payload: []byte(`{"path":"a","to":"http://host?mail=a@b"}`),
	}}
	if got := view.Work(&odd); got != "stint.upload a to http://host?mail=a@b" {
		t.Errorf("a table shows %q", got)
	}
	if got := view.Work(&task); got != "stint.upload /data/a.tar to http://me:xxxxx@host/files/" {
		t.Errorf("a table shows %q", got)
	}
	for _, reveal := range []bool{false, true} {
		var out strings.Builder
		if err := view.Show(&out, &task, noon, reveal); err != nil {
			t.Fatal(err)
		}
		if err := json.NewEncoder(&out).Encode(view.TaskJSON(&task, reveal)); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "cret") != reveal || strings.Contains(out.String(), "xxxxx") == reveal {
			t.Errorf("revealed %v, it shows\n%s", reveal, out.String())
		}
	}
}

// The table has the result and duration of the last attempt and the labels; its lines are
// cut to the width of the terminal.
func TestC4_TableOfTasks(t *testing.T) {
	at := func(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }
	email := queue.Spec{Kind: "email", Options: queue.Options{Queue: "default"}}
	tasks := []queue.Task{
		{
			ID: queue.ID{15: 1}, State: queue.Dead, Changed: at(-60), Checkpoint: []byte(`{"status":0,"signal":15}`),
			Spec: queue.Spec{
				Kind:    "command",
				Payload: []byte(`{"args":["make","all"]}`),
				Options: queue.Options{
					Queue:  "default",
					Key:    "k",
					Labels: map[string]string{"b": "2", "a": "1"},
				},
			},
			Steps: []queue.Step{
				{At: at(-100), On: queue.OnClaim},
				{At: at(-90), On: queue.OnFailure},
				{At: at(-62), On: queue.OnClaim},
				{At: at(-60), On: queue.OnFailure},
			},
		},
		{
			ID: queue.ID{15: 2}, State: queue.Running, Changed: at(-90), Spec: email,
			Steps: []queue.Step{{At: at(-90), On: queue.OnClaim}},
		},
		{ID: queue.ID{15: 3}, State: queue.Waiting, Changed: at(-1), Spec: email},
		{
			ID: queue.ID{15: 4}, State: queue.Running, Changed: at(-5), Checkpoint: []byte(`{"status":3}`),
			Spec: queue.Spec{
				Kind: "command", Payload: []byte(`{"args":["retried"]}`), Options: queue.Options{Queue: "default"},
			},
			Steps: []queue.Step{
				{At: at(-9), On: queue.OnClaim}, {At: at(-7), On: queue.OnFailure}, {At: at(-5), On: queue.OnClaim},
			},
		},
	}
	for columns, want := range map[int]string{
		0: "ID        STATE    EXIT  TOOK   QUEUE    TIER  KEY  LABELS   CHANGED  WORK\n" +
			"00000001  dead     143   2.0s   default  -     k    a=1,b=2  1m0s     make all\n" +
			"00000002  running  -     1m30s  default  -     -    -        1m30s    email\n" +
			"00000003  waiting  -     -      default  -     -    -        1.0s     email\n" +
			"00000004  running  -     5.0s   default  -     -    -        5.0s     retried\n",
		31: "ID        STATE    EXIT  TOOK …\n" +
			"00000001  dead     143   2.0s …\n" +
			"00000002  running  -     1m30s…\n" +
			"00000003  waiting  -     -    …\n" +
			"00000004  running  -     5.0s …\n",
	} {
		var out strings.Builder
		if err := view.Tasks(&out, tasks, true, noon, columns); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("of %d columns:\n%s, want\n%s", columns, out.String(), want)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 12 * time.Millisecond: "12ms", 1500 * time.Millisecond: "1.5s", 61 * time.Second: "1m1s",
		3 * time.Hour: "3h0m", 49 * time.Hour: "2d1h",
	} {
		if got := view.Span(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
	if got := view.Ago(-time.Minute); got != "in 1m0s" {
		t.Errorf("a minute ahead is %q", got)
	}
}

// A process left behind by another is listed with the running ones, or counted among
// others that cannot be seen.
func TestB8_TakenByWhatOutlivedAProcess(t *testing.T) {
	for _, row := range []struct {
		holder shm.ProcessUsage
		want   string
	}{
		{shm.ProcessUsage{Process: shm.Process{PID: 7, Name: "sh"}, Slots: 1}, "sh[7]"},
		{
			shm.ProcessUsage{Process: shm.Process{PID: 8, Name: "cat", Stopped: true, Outlived: "sh[7]"}, Slots: 2},
			"cat[8] (2, stopped, outlived sh[7])",
		},
		{
			shm.ProcessUsage{Process: shm.Process{PID: 8, Name: "cat", Outlived: "sh[7]", Others: 3}, Slots: 1},
			"cat[8] (with 3 more, outlived sh[7])",
		},
		{shm.ProcessUsage{Process: shm.Process{Outlived: "sh[7]"}, Slots: 1}, "a process that outlived sh[7]"},
	} {
		usage := shm.LimitUsage{Max: 4, Running: row.holder.Slots, Holders: []shm.ProcessUsage{row.holder}}
		begins := "2 of 4 slots of io are taken, by "
		if usage.Running == 1 {
			begins = "1 of 4 slots of io is taken, by "
		}
		if got := view.Taken("io", usage); got != begins+row.want {
			t.Errorf("it says %q, want that %s has them", got, row.want)
		}
	}
}
