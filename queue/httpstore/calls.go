package httpstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// Submit is as [queue.Store] says. It divides no call, because a server accepts all tasks of a call
// or none.
func (s *Store) Submit(ctx context.Context, now time.Time, tasks []queue.NewTask) ([]queue.Receipt, error) {
	if len(tasks) > wire.ItemsMost {
		return nil, fmt.Errorf("%w: a call submits at most %d tasks, and this one has %d: submit them in parts",
			queue.ErrTooLarge, wire.ItemsMost, len(tasks))
	}
	for i := range tasks {
		if err := checkText(&tasks[i].Spec); err != nil {
			return nil, err
		}
	}
	var out wire.Receipts
	_, err := s.call(ctx, now, wire.Submit, &wire.SubmitCall{Tasks: tasks}, &out)
	if err == nil && len(out.Receipts) != len(tasks) {
		err = s.invalidAnswer("%d receipts for %d tasks", len(out.Receipts), len(tasks))
	}
	if err != nil {
		return nil, err
	}
	return out.Receipts, nil
}

// checkText refuses a task with names that JSON would change.
func checkText(t *queue.Spec, texts ...string) error {
	texts = append(texts, t.Queue, t.Kind, t.Key, t.Unique, t.Group, t.Trace)
	return errors.Join(checkNames(texts...), checkLabels(t.Labels))
}

// checkFilter refuses a filter with texts that JSON would change, because it would find
// other tasks.
func checkFilter(f *queue.Filter, texts ...string) error {
	texts = append(texts, f.Ending, f.Queue, f.Kind, f.Key, f.Group, f.Worker, f.Error)
	return errors.Join(checkNames(texts...), checkLabels(f.Labels))
}

func checkLabels(labels map[string]string) error {
	for name, value := range labels {
		if err := checkNames(name, value); err != nil {
			return err
		}
	}
	return nil
}

// checkNames refuses names that are not valid UTF-8: JSON would replace their bytes.
func checkNames(texts ...string) error {
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return invalid("%q has characters that are not text", text)
		}
	}
	return nil
}

// Settle is as [queue.Store] says. A list of many outcomes, or of large ones, is settled in parts: after an
// error the parts before it have been settled, and may be settled again.
func (s *Store) Settle(ctx context.Context, now time.Time, outcomes []queue.Outcome) ([]error, error) {
	size := func(o *queue.Outcome) int { return len(o.Result) + len(o.Error) + len(o.Checkpoint) }
	return inParts(outcomes, size, func(part []queue.Outcome) ([]error, error) { return s.settle(ctx, now, part) })
}

// inParts makes calls for parts of items, and at least one call. A part has at most
// [wire.ItemsMost] items and, before its last one, [wire.BytesMost] bytes by their sizes: that
// leaves room in the body of a call, where bytes are a third longer in JSON.
func inParts[In, Out any](
	items []In, size func(*In) int, call func(part []In) ([]Out, error),
) (all []Out, err error) {
	for {
		n := 0
		for total := 0; n < min(len(items), wire.ItemsMost) && total < wire.BytesMost; n++ {
			total += size(&items[n])
		}
		part := items[:n]
		answers, err := call(part)
		if err != nil {
			return nil, err
		}
		all = append(all, answers...)
		if items = items[n:]; len(items) == 0 {
			return all, nil
		}
	}
}

func (s *Store) settle(ctx context.Context, now time.Time, outcomes []queue.Outcome) ([]error, error) {
	var out wire.Settled
	_, err := s.call(ctx, now, wire.Settle, &wire.SettleCall{Outcomes: outcomes}, &out)
	if err == nil && len(out.Answers) != len(outcomes) {
		err = s.invalidAnswer("%d answers to %d outcomes", len(out.Answers), len(outcomes))
	}
	if err != nil {
		return nil, err
	}
	errs := make([]error, len(outcomes))
	for i, p := range out.Answers {
		if p != nil {
			errs[i] = p.Err()
		}
	}
	return errs, nil
}

// Heartbeat is as [queue.Store] says. A list of many heartbeats, or of large ones, is sent in
// parts: after an error the parts before it have been made.
func (s *Store) Heartbeat(
	ctx context.Context, now time.Time, w queue.Worker, heartbeats []queue.Heartbeat,
) ([]queue.Answer, error) {
	names := []string{w.Name, w.Host}
	for name, kinds := range w.Kinds {
		names = append(append(names, name), kinds...)
	}
	if err := checkNames(names...); err != nil {
		return nil, err
	}
	size := func(h *queue.Heartbeat) int { return len(h.Checkpoint) + len(h.Progress.Note) }
	return inParts(heartbeats, size, func(part []queue.Heartbeat) ([]queue.Answer, error) {
		return s.heartbeat(ctx, now, w, part)
	})
}

func (s *Store) heartbeat(
	ctx context.Context, now time.Time, w queue.Worker, heartbeats []queue.Heartbeat,
) ([]queue.Answer, error) {
	var out wire.Answers
	_, err := s.call(ctx, now, wire.Heartbeat, wire.HeartbeatCall{Worker: w, Heartbeats: heartbeats}, &out)
	if err == nil && len(out.Answers) != len(heartbeats) {
		err = s.invalidAnswer("%d answers to %d heartbeats", len(out.Answers), len(heartbeats))
	}
	if err != nil {
		return nil, err
	}
	return out.Answers, nil
}

// Command is as [queue.Store] says.
func (s *Store) Command(ctx context.Context, now time.Time, c queue.Command) (int, error) {
	if err := checkFilter(&c.Filter, c.By, c.Reason); err != nil {
		return 0, err
	}
	if e := c.Edit; e != nil {
		key := ""
		if e.Key != nil {
			key = *e.Key
		}
		if err := errors.Join(checkNames(key), checkLabels(e.Labels)); err != nil {
			return 0, err
		}
	}
	var out wire.Changed
	_, err := s.call(ctx, now, wire.Command, c, &out)
	return out.Changed, err
}

// Find is as [queue.Store] says. It asks for a large page, of many tasks or many bytes, in
// parts. A server of a version before Page.Durable answers without waiting.
func (s *Store) Find(ctx context.Context, f queue.Filter, p queue.Page) (found []queue.Task, err error) {
	if err := checkFilter(&f); err != nil {
		return nil, err
	}
	const usual = 100 // tasks
	if p.Limit <= 0 {
		p.Limit = usual
	}
	all, bounded := p.Limit, p.Bytes > 0
	var missing error
	for {
		p.Limit = min(all-len(found), wire.PageMost)
		var out wire.Tasks
		_, err := s.call(ctx, clock.Now(), wire.Find, wire.FindCall{Filter: f, Page: p}, &out)
		if p.Durable && errors.Is(err, queue.ErrInvalid) && strings.Contains(err.Error(), `unknown field "durable"`) {
			p.Durable = false // the server is of a version that has no such member
			continue
		}
		if err != nil {
			return nil, err
		}
		found, missing = append(found, out.Tasks...), cmp.Or(missing, out.Err())
		p.Bytes -= sizeOf(out.Tasks)
		last := !out.More && len(out.Tasks) < p.Limit
		if last || len(out.Tasks) == 0 || len(found) >= all || bounded && p.Bytes <= 0 {
			return found, missing
		}
		p.Bytes = max(p.Bytes, 0)
		p.After = found[len(found)-1].ID
	}
}

// sizeOf returns the size of tasks in bytes.
func sizeOf(tasks []queue.Task) (size int) {
	for i := range tasks {
		size += tasks[i].Size()
	}
	return size
}

// Explain is as [queue.Store] says.
func (s *Store) Explain(ctx context.Context, now time.Time, id queue.ID) ([]queue.Reason, error) {
	var out wire.Reasons
	query := url.Values{wire.QueryID: {id.String()}}
	_, err := s.call(ctx, now, wire.Explain+"?"+query.Encode(), nil, &out)
	return out.Reasons, err
}

// Stats is as [queue.Store] says.
func (s *Store) Stats(ctx context.Context, now time.Time) (queue.Stats, error) {
	var out queue.Stats
	_, err := s.call(ctx, now, wire.Stats, nil, &out)
	return out, err
}

// Configure is as [queue.Store] says.
func (s *Store) Configure(ctx context.Context, now time.Time, name string, c queue.Change) error {
	if err := checkNames(name, c.Key, c.By); err != nil {
		return err
	}
	_, err := s.call(ctx, now, wire.Configure, wire.ConfigureCall{Queue: name, Change: c}, &struct{}{})
	return err
}

// PauseQueue is as [queue.Store] says.
func (s *Store) PauseQueue(ctx context.Context, now time.Time, name string, p *queue.Pause) error {
	texts := []string{name}
	if p != nil {
		texts = append(texts, p.By, p.Reason)
	}
	if err := checkNames(texts...); err != nil {
		return err
	}
	_, err := s.call(ctx, now, wire.Pause, wire.PauseCall{Queue: name, Pause: p}, &struct{}{})
	return err
}

// Settings is as [queue.Store] says.
func (s *Store) Settings(ctx context.Context) (map[string]queue.Configured, error) {
	var out wire.AllSettings
	_, err := s.call(ctx, time.Time{}, wire.Settings, nil, &out)
	return out.Settings, cmp.Or(err, out.Err())
}

// Schedules is as [queue.Store] says.
func (s *Store) Schedules(ctx context.Context) ([]queue.ScheduleState, error) {
	var out wire.AllSchedules
	_, err := s.call(ctx, time.Time{}, wire.Schedules, nil, &out)
	return out.Schedules, cmp.Or(err, out.Err())
}

// Reschedule is as [queue.Store] says.
func (s *Store) Reschedule(ctx context.Context, now time.Time, r queue.Reschedule) error {
	for i := range r.Tasks {
		if err := checkText(&r.Tasks[i].Spec); err != nil {
			return err
		}
	}
	if r.To != nil {
		if err := checkText(&r.To.Task, r.Name, r.To.Name); err != nil {
			return err
		}
	}
	_, err := s.call(ctx, now, wire.Reschedule, r, &struct{}{})
	return err
}

// Maintain is as [queue.Store] says.
func (s *Store) Maintain(ctx context.Context, now time.Time, limit int) (next time.Time, err error) {
	var out wire.Maintained
	ahead, err := s.call(ctx, now, wire.Maintain, wire.MaintainCall{Limit: limit}, &out)
	return earlier(out.Next, ahead), err
}

// earlier converts a time of the server's clock to the caller's clock; ahead is how far
// the server's is ahead.
func earlier(t time.Time, ahead time.Duration) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(-ahead)
}
