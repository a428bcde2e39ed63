package view_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/cmd/stint/internal/view"
	"github.com/stintgo/stint/queue"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.Local)

// Each reason is a sentence with what a person needs in order to act.
func TestReason(t *testing.T) {
	id := queue.ID{15: 1}
	for _, row := range []struct {
		reason queue.Reason
		want   string
	}{
		{
			queue.Reason{Reason: stint.Reason{Code: queue.CodeTaskPaused, By: "me: lunch", Since: noon.Add(-time.Hour)}},
			"somebody has paused it (me: lunch) 1h0m ago: resume it",
		},
		{
			queue.Reason{Reason: stint.Reason{Code: stint.Code(queue.HoldQueuePaused)}},
			"its queue is paused: resume the queue",
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
			queue.Reason{Reason: stint.Reason{Code: stint.Code(queue.HoldDependency)}, What: id.String(), State: queue.Dead},
			"it waits for task 00000000-0000-0000-0000-000000000001, which is dead",
		},
		{
			queue.Reason{Reason: stint.Reason{Code: stint.Code(queue.HoldDependency)}, What: "B"},
			"it waits for the end of batch B",
		},
		{
			queue.Reason{Reason: stint.Reason{Code: stint.Code(queue.HoldGroup)}, What: "g\x1b[2J"},
			"it waits for its turn in group g?[2J",
		},
		{
			queue.Reason{Reason: stint.Reason{Code: stint.CodeKey, Key: "k", Limit: 1, Running: 1}, Holders: []queue.ID{id}},
			"as many tasks of key k run as may: 1 of 1: 00000000-0000-0000-0000-000000000001",
		},
		{
			queue.Reason{Reason: stint.Reason{Code: stint.Code(queue.HoldKeyRate), Key: "k"}, Until: noon},
			"its key k has used up its rate, until 2026-11-20 12:00:00.000",
		},
		{
			queue.Reason{Reason: stint.Reason{Code: stint.Code(queue.HoldDamaged)}, What: "bad block"},
			"it cannot be read: look after the disk, or put the store back from a copy (bad block)",
		},
		{
			queue.Reason{Reason: stint.Reason{Code: queue.CodeNoWorker}, What: "email"},
			"no worker does tasks of kind email in its queue; none ever did",
		},
		{
			queue.Reason{
				Reason: stint.Reason{Code: queue.CodeNoWorker}, What: "email",
				LastSeen: queue.Seen{Worker: "w", At: noon.Add(-25 * time.Hour)},
			},
			"no worker does tasks of kind email in its queue; the last one was w, 1d1h ago",
		},
		{
			queue.Reason{Reason: stint.Reason{Code: stint.CodeMax, Limit: 3, Running: 3}},
			"as many tasks of its queue run as may: 3 of 3",
		},
		{
			queue.Reason{Reason: stint.Reason{Code: stint.CodeCap, Limit: 3, Running: 4}},
			"its tier may start while fewer than 3 tasks of its queue run, and 4 do",
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
			queue.Reason{
				Reason:   stint.Reason{Code: stint.CodeBehind, Ahead: [stint.Tiers]int{3: 5, 6: 1}},
				Estimate: 30 * time.Second,
			},
			"others go first: 1 of tier highest, 5 of tier normal (about 30.0s, as things go)",
		},
		{queue.Reason{Reason: stint.Reason{Code: "new"}, What: "x"}, "new x"},
	} {
		if got := view.Reason(&row.reason, noon); got != row.want {
			t.Errorf("%s:\n%s, want\n%s", row.reason.Code, got, row.want)
		}
	}
}

// What others have written cannot do anything to a terminal, or break a table.
func TestTasks_TextOfOthers(t *testing.T) {
	var out strings.Builder
	evil := "a\x1b]0;x\x07\nb\tc\u202e"
	task := queue.Task{
		Spec:  queue.Spec{Queue: evil, Kind: evil, Key: evil, Payload: []byte(strings.Repeat(evil, 100))},
		State: queue.Dead, Error: evil, Changed: noon,
		Steps: []queue.Step{{At: noon, On: queue.OnFailure, To: queue.Dead, By: evil, Detail: evil}},
	}
	if err := view.Tasks(&out, []queue.Task{task}, true, noon); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "\n"); got != 2 {
		t.Errorf("a table of one task has %d lines:\n%q", got, out.String())
	}
	if err := view.Show(&out, &task, noon); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"\x1b", "\x07", "\u202e"} {
		if strings.Contains(out.String(), bad) {
			t.Errorf("it shows %q", bad)
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
