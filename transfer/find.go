package transfer

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/stintgo/stint/queue"
)

// Transfer is an upload as its task in the store has it. A running one is as it was at the
// last heartbeat of its worker, about a second ago.
type Transfer struct {
	ID    queue.ID    `json:"id"`
	Name  string      `json:"name"`
	Path  string      `json:"path"`
	To    string      `json:"to"` // without a password that is in the URL
	State queue.State `json:"state"`
	// Done is the number of bytes that the server has, or is being sent. It decreases when a
	// chunk has to be sent again.
	Done int64 `json:"done"`
	Size int64 `json:"size"` // bytes; 0 if it is not known
	// Chunks are the states of the file's chunks; nil before the first attempt, and for
	// [Input].
	Chunks []ChunkState `json:"chunks,omitempty"`
	// Rate is the number of bytes per second in the last seconds, also those of chunks that are sent
	// again; 0 if the upload does not run.
	Rate float64 `json:"rate"`
	// ETA is the time until the rest is sent at that rate; 0 if that is not known.
	ETA time.Duration `json:"eta_ns,omitempty"`
	// Attempt is the number of failed attempts plus one; of a dead or cancelled upload it is
	// that number itself, but at least 1. Attempts that were released, or lost their worker, do
	// not count.
	Attempt int    `json:"attempt"`
	URL     string `json:"url,omitempty"` // of the file at the server, without a password, if it succeeded
	Err     string `json:"err,omitempty"` // of the last attempt that failed
}

// Of returns the upload of a task. Errors: [queue.ErrInvalid] if the task is of another kind,
// or has another payload or checkpoint than those of this package.
func Of(task queue.Task) (Transfer, error) {
	if task.Kind != string(Kind) {
		return Transfer{}, fmt.Errorf("%w: task %s is of kind %q and not an upload", queue.ErrInvalid, task.ID, task.Kind)
	}
	var u Upload
	if err := json.Unmarshal(task.Payload, &u); err != nil {
		return Transfer{}, fmt.Errorf("%w: payload of upload %s: %w", queue.ErrInvalid, task.ID, err)
	}
	t := Transfer{
		ID: task.ID, Name: u.name(), Path: u.Path, To: redacted(u.To), State: task.State, Size: u.Size,
		Attempt: task.Failures + 1,
		Err:     task.Error,
	}
	if task.State == queue.Dead || task.State == queue.Cancelled {
		t.Attempt = max(1, task.Failures)
	}
	if len(task.Checkpoint) > 0 {
		p, err := decodePlan(task.Checkpoint)
		if err != nil {
			return Transfer{}, err
		}
		if task.State != queue.Running {
			p.chunks.stop()
		}
		t.Chunks, _ = p.chunks.copied()
		t.Size, t.Done = p.layout.size, p.acknowledged()
	}
	switch task.State {
	case queue.Running:
		t.Done, t.Size = max(t.Done, task.Progress.Done), max(t.Size, task.Progress.Total)
		t.Rate = rateOf(task.Progress.Note)
		if left := t.Size - t.Done; t.Rate > 0 && left > 0 {
			// Above a century, while an upload stalls, it is meaningless and would overflow.
			if seconds := float64(left) / t.Rate; seconds < 100*365*24*3600 {
				t.ETA = time.Duration(seconds * float64(time.Second))
			}
		}
	case queue.Succeeded:
		result, err := queue.Result[Result](task)
		if err != nil {
			return Transfer{}, err
		}
		t.Done, t.Size, t.URL = result.Size, result.Size, redacted(result.URL)
	default:
	}
	return t, nil
}

// Find yields the uploads among the tasks that a filter finds, the oldest first, as
// [queue.Queue.Find] does. The Kind of the filter is ignored.
func Find(ctx context.Context, q *queue.Queue, f queue.Filter) iter.Seq2[Transfer, error] {
	f.Kind = string(Kind)
	return func(yield func(Transfer, error) bool) {
		for task, err := range q.Find(ctx, f) {
			var t Transfer
			if err == nil {
				t, err = Of(task)
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

// Stats are numbers over many uploads.
type Stats struct {
	States map[queue.State]int `json:"states"` // the number of uploads in each state
	Done   int64               `json:"done"`   // bytes of all
	Size   int64               `json:"size"`   // bytes of all whose size is known
	Rate   float64             `json:"rate"`   // bytes per second of all that run
}

// Count returns the statistics of the uploads that a filter finds. Finished ones count as long
// as the store keeps them. It reads every task, as Find does.
func Count(ctx context.Context, q *queue.Queue, f queue.Filter) (Stats, error) {
	all := Stats{States: make(map[queue.State]int)}
	for t, err := range Find(ctx, q, f) {
		if err != nil {
			return Stats{}, err
		}
		all.States[t.State]++
		all.Done += t.Done
		all.Size += t.Size
		all.Rate += t.Rate
	}
	return all, nil
}
