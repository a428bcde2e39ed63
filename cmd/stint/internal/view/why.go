package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// Reason returns a sentence that says why a task waits.
func Reason(r *queue.Reason, now time.Time) string {
	switch r.Code {
	case queue.CodeTaskPaused:
		return "it was paused" + by(r, now) + ": stint resume with its ID lets it start"
	case stint.Code(queue.HoldQueuePaused), stint.CodePaused:
		return queuePaused(r, now)
	case queue.CodeScheduled:
		return scheduled(r, now)
	case stint.Code(queue.HoldDependency):
		if r.State == 0 {
			return fmt.Sprintf("it waits for the end of batch %s", Plain(r.What))
		}
		return fmt.Sprintf("it waits for task %s, which is %s", Plain(r.What), r.State)
	case stint.Code(queue.HoldForgotten):
		return fmt.Sprintf("task %s, which had to succeed first, was forgotten: this one will be cancelled", Plain(r.What))
	case stint.Code(queue.HoldGroup):
		return fmt.Sprintf("it waits for its turn in group %s", Plain(r.What))
	case stint.Code(queue.HoldSuspect):
		return "it has crashed with its workers, and one more crash makes it dead; such tasks run one at a time" + holders(r)
	case stint.Code(queue.HoldDamaged):
		return fmt.Sprintf("it cannot be read: check the disk, or restore the store from a copy (%s)", Plain(r.What))
	case stint.CodeKey:
		return fmt.Sprintf("key %s is at its limit: %d of %d run%s%s",
			Plain(r.Key), r.Running, r.Limit, limitBy(r, now), holders(r))
	case stint.Code(queue.HoldKeyTotal):
		return fmt.Sprintf("key %s is at its limit in all queues together: %d of %d run%s, %s",
			Plain(r.Key), r.Running, r.Limit, limitBy(r, now), inQueues(r))
	case stint.Code(queue.HoldKeyRate):
		return fmt.Sprintf("its key %s has used up its rate%s, until %s", Plain(r.Key), limitBy(r, now), clock(until(r)))
	case queue.CodeNoWorker:
		return noWorker(r, now)
	case stint.CodeMax:
		return fmt.Sprintf("its queue is at its limit: %d of %d run%s%s",
			r.Running, r.Limit, limitBy(r, now), holders(r))
	case queue.CodeTotal:
		return total(r, now)
	case stint.CodeCap:
		does := "do"
		if r.Running == 1 {
			does = "does"
		}
		return fmt.Sprintf("its tier may start while fewer than %s of its queue run%s, and %d %s",
			Count(r.Limit, "task"), limitBy(r, now), r.Running, does)
	case stint.CodeRate:
		return fmt.Sprintf("its queue has used up its rate%s, until %s", limitBy(r, now), clock(until(r)))
	case stint.CodeBehind:
		return behind(r)
	default:
		return unknown(r)
	}
}

// unknown is the sentence for a code of a server that is newer than this program.
func unknown(r *queue.Reason) string {
	text := fmt.Sprintf("it waits for a reason that this version of stint does not know: %q", r.Code)
	if r.What != "" {
		text += " (" + Plain(r.What) + ")"
	}
	return text
}

// limitBy says what has set a limit, and when.
func limitBy(r *queue.Reason, now time.Time) string {
	if r.SetBy == (queue.Origin{}) {
		return ""
	}
	text := "set by " + setBy(r.SetBy)
	if r.SetBy.Default {
		text += " for all queues"
	}
	if !r.SetBy.At.IsZero() {
		text += fmt.Sprintf(" %s ago", Span(now.Sub(r.SetBy.At)))
	}
	return " (" + text + ")"
}

// total says that the limit over all queues is reached.
func total(r *queue.Reason, now time.Time) string {
	if r.Running < r.Limit {
		return fmt.Sprintf("the slots that are free of those for all queues, %d of %d%s, are kept for queues that have "+
			"waited longer", r.Limit-r.Running, r.Limit, limitBy(r, now))
	}
	return fmt.Sprintf("all queues together are at their limit: %d of %d run%s, %s",
		r.Running, r.Limit, limitBy(r, now), inQueues(r))
}

// inQueues returns the number of running tasks by queue.
func inQueues(r *queue.Reason) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(r.Queues)) {
		names = append(names, fmt.Sprintf("%d of queue %s", r.Queues[name], Plain(name)))
	}
	return strings.Join(names, ", ")
}

// by names the author of a pause, and its time.
func by(r *queue.Reason, now time.Time) (text string) {
	if r.By != "" {
		text = " (" + Plain(r.By) + ")"
	}
	if !r.Since.IsZero() {
		text += fmt.Sprintf(" %s ago", Span(now.Sub(r.Since)))
	}
	return text
}

// queuePaused says that the queue of a task is paused, alone or with all queues.
func queuePaused(r *queue.Reason, now time.Time) string {
	if r.SetBy.Default {
		return "all queues were paused" + by(r, now) + ": stint resume --all resumes them"
	}
	return fmt.Sprintf("its queue was paused%s: stint resume --queue %s resumes it", by(r, now), Plain(r.What))
}

func scheduled(r *queue.Reason, now time.Time) string {
	if r.Failures > 0 {
		return fmt.Sprintf("it has failed %s and is tried again in %s, at %s",
			Count(r.Failures, "time"), Span(r.Until.Sub(now)), clock(r.Until))
	}
	return fmt.Sprintf("it is not to start before %s, in %s", clock(r.Until), Span(r.Until.Sub(now)))
}

func noWorker(r *queue.Reason, now time.Time) string {
	text := fmt.Sprintf("no worker handles kind %s in its queue", Plain(r.What))
	if r.LastSeen.Worker == "" {
		return text + "; none ever has"
	}
	return text + fmt.Sprintf("; the last one was %s, %s ago", Plain(r.LastSeen.Worker), Span(now.Sub(r.LastSeen.At)))
}

func until(r *queue.Reason) time.Time {
	if r.Until.IsZero() {
		return r.FreeAt
	}
	return r.Until
}

// holdersMax is how many holders are named.
const holdersMax = 3

func holders(r *queue.Reason) string {
	var names []string
	for _, id := range r.Holders[:min(len(r.Holders), holdersMax)] {
		names = append(names, id.String())
	}
	if len(names) == 0 {
		return ""
	}
	return ": " + strings.Join(names, ", ")
}

// behind says which tasks go first, the highest tier first. It is stint.Reason.String with tasks for entries, and
// without Resuming, which stores do not set: their tasks do not suspend slots.
func behind(r *queue.Reason) string {
	var tiers []string
	for i, n := range slices.Backward(r.Ahead[:]) {
		if n > 0 {
			tiers = append(tiers, fmt.Sprintf("%d of tier %s", n, stint.Lowest+stint.Priority(i)))
		}
	}
	if len(tiers) == 0 {
		return "it is next, when a worker has a free slot"
	}
	return "other tasks go first: " + strings.Join(tiers, ", ")
}

// State says why a task has nothing to wait for.
func State(t *queue.Task, now time.Time) string {
	span := since(t.Changed, now)
	if t.State == queue.Running {
		return fmt.Sprintf("it has been running for %s, on %s", span, Plain(t.Lease.Worker))
	}
	return fmt.Sprintf("it waits for nothing: %s %s ago", t.State, span)
}

// Returned returns a sentence about a task whose last step was its return to the queue, because the worker
// lacked something that the task needs to start: when, and what. It returns "" for other tasks.
func Returned(t *queue.Task, now time.Time) string {
	if len(t.Steps) == 0 {
		return ""
	}
	last := t.Steps[len(t.Steps)-1]
	if last.On != queue.OnRelease || last.Detail == "" {
		return ""
	}
	return fmt.Sprintf("a worker returned it to the queue %s ago: %s", Span(now.Sub(last.At)), firstLine(last.Detail))
}

// End returns how a task has ended, on one line.
func End(t *queue.Task) string {
	if t.Error == "" || t.State == queue.Succeeded {
		return t.State.String()
	}
	return fmt.Sprintf("%s: %s", t.State, firstLine(t.Error))
}
