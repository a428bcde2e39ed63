package wire_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// claimed is the answer to a claim of 20 small tasks.
func claimed() queue.Claimed {
	now := time.Date(2026, 11, 29, 0, 0, 0, 1, time.UTC)
	t := queue.Task{
		Spec:  queue.Spec{Kind: "email", Payload: make([]byte, 100), Options: queue.Options{Queue: "default"}},
		State: queue.Running, Lease: queue.Lease{Worker: "host-1234-1", Token: 1 << 30, Until: now},
		Submitted: now, Changed: now,
		Steps: []queue.Step{
			{At: now, On: queue.OnSubmit, To: queue.Waiting},
			{At: now, On: queue.OnClaim, To: queue.Running, By: "host-1234-1", Token: 1 << 30},
		},
	}
	tasks := make([]queue.Task, 20)
	for i := range tasks {
		tasks[i] = t
		tasks[i].ID[0] = byte(i + 1)
	}
	return queue.Claimed{Tasks: tasks}
}

func BenchmarkPack(b *testing.B) {
	c := claimed()
	b.ReportAllocs()
	for b.Loop() {
		body, err := wire.Pack(&c)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(body)))
	}
}

func BenchmarkUnpack(b *testing.B) {
	c := claimed()
	body, err := wire.Pack(&c)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		var back queue.Claimed
		if err := wire.Unpack(body, &back, int64(len(body))); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMarshalJSON(b *testing.B) {
	c := claimed()
	b.ReportAllocs()
	for b.Loop() {
		text, err := json.Marshal(&c)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(text)))
	}
}

func BenchmarkUnmarshalJSON(b *testing.B) {
	c := claimed()
	text, err := json.Marshal(&c)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		var back queue.Claimed
		if err := json.Unmarshal(text, &back); err != nil {
			b.Fatal(err)
		}
	}
}
