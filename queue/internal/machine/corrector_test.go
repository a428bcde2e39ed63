package machine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// correcting is a machine whose first call corrects the times of its rows, and waits
// until the first part of them is written.
type correcting struct {
	*machine.Machine
	rows  *rows
	tasks []queue.NewTask // an hour ahead
	first chan error      // receives the result of the first call
}

// openAhead returns a machine whose first call is first.
func openAhead(t *testing.T, first func(context.Context, *machine.Machine) error) *correcting {
	t.Helper()
	const n = 12 // of 1 MiB each, so there are some parts
	r := newRows()
	m := open(t, r)
	c := &correcting{first: make(chan error, 1)}
	var ids queue.IDs
	for range n {
		c.tasks = append(c.tasks, newTask(&ids, queue.Spec{Payload: make([]byte, 1<<20)}))
	}
	if _, err := m.Submit(t.Context(), start.Add(time.Hour), c.tasks); err != nil {
		t.Fatal(err)
	}
	c.rows = r.crash()
	begun := make(chan struct{})
	m, err := machine.Open(c.rows, machine.Config{SetBack: func(time.Duration) { close(begun) }})
	if err != nil {
		t.Fatal(err)
	}
	c.Machine, c.rows.gate = m, make(chan struct{})
	go func() { c.first <- first(t.Context(), m) }()
	<-begun
	return c
}

func maintain(ctx context.Context, m *machine.Machine) error {
	_, err := m.Maintain(ctx, start, 0)
	return err
}

// corrected checks that the times of all tasks are right if the machine ends now.
func (c *correcting) corrected(t *testing.T) {
	t.Helper()
	found, err := openOn(t, c.rows.crash()).Find(t.Context(), queue.Filter{}, queue.Page{})
	if err != nil || len(found) != len(c.tasks) {
		t.Fatal(len(found), err)
	}
	for i := range found {
		if !found[i].Submitted.Equal(start) {
			t.Errorf("task %d was submitted at %v, want %v", i, found[i].Submitted, start)
		}
	}
}

// within fails the test if a call does not return for very long.
func within(t *testing.T, what string, call func() error) {
	t.Helper()
	returned := make(chan error, 1)
	go func() { returned <- call() }()
	select {
	case err := <-returned:
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("%s does not return", what)
	}
}

// A task stays later than a predecessor whose time is not corrected, so that the predecessor is not
// taken for a later task with its ID.
func TestC8_PredecessorsAfterAClockAhead(t *testing.T) {
	r := newRows()
	m := open(t, r)
	var ids queue.IDs
	before := []queue.NewTask{newTask(&ids, queue.Spec{}), newTask(&ids, queue.Spec{})}
	submit(t, m, before...)
	after := []queue.ID{before[0].ID, before[1].ID}
	next := newTask(&ids, queue.Spec{Options: queue.Options{After: after[:1], AfterAny: after[1:]}})
	last := newTask(&ids, queue.Spec{})
	for i, task := range []queue.NewTask{next, last} {
		at := start.Add(time.Duration(i+1) * time.Hour)
		if _, err := m.Submit(t.Context(), at, []queue.NewTask{task}); err != nil {
			t.Fatal(err)
		}
	}
	m = open(t, r.crash())
	maintainAt(t, m, start.Add(time.Minute))
	found, err := m.Find(t.Context(), queue.Filter{IDs: []queue.ID{next.ID}}, queue.Page{})
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	all, err := queue.New(m, queue.Config{}).Predecessors(t.Context(), found[0])
	if err != nil || len(all) != 2 || all[0].Forgotten || all[1].Forgotten {
		t.Errorf("the predecessors are %+v, error %v", all, err)
	}
}

// While corrected rows wait to be written, as on a full disk, tasks can be read, and a
// step waits no longer than its context. When they are written, all times are right.
func TestC8_ReadsWhileTimesAreCorrected(t *testing.T) {
	c := openAhead(t, maintain)
	ctx := t.Context()
	within(t, "Find", func() error {
		found, err := c.Find(ctx, queue.Filter{}, queue.Page{})
		if len(found) != len(c.tasks) {
			t.Errorf("%d tasks are found, want %d", len(found), len(c.tasks))
		}
		return err
	})
	within(t, "Stats", func() error { _, err := c.Stats(ctx, start); return err })
	within(t, "Explain", func() error { _, err := c.Explain(ctx, start, c.tasks[0].ID); return err })
	within(t, "Settings", func() error { _, err := c.Settings(ctx); return err })
	within(t, "Listen", func() error { _, stop := c.Listen(""); stop(); return nil })
	within(t, "Submit", func() error {
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if _, err := c.Submit(short, start, c.tasks[:1]); !errors.Is(err, queue.ErrUnavailable) {
			t.Errorf("a submit whose context ends returns %v", err)
		}
		return nil
	})
	claimed := make(chan int)
	go func() { claimed <- len(claimAt(t, c.Machine, start, len(c.tasks))) }()
	select {
	case err := <-c.first:
		t.Errorf("the first call returns before its corrections are durable: %v", err)
	default:
	}
	close(c.rows.gate)
	within(t, "the first call", func() error { return <-c.first })
	if got := <-claimed; got != len(c.tasks) {
		t.Errorf("%d tasks are claimed, want %d", got, len(c.tasks))
	}
	c.corrected(t)
}

// Close waits until all times have been corrected. Calls that wait meanwhile return
// ErrClosed.
func TestC8_CloseWhileTimesAreCorrected(t *testing.T) {
	c := openAhead(t, maintain)
	closed := make(chan error, 1)
	go func() { closed <- c.Close() }()
	close(c.rows.gate)
	within(t, "Close", func() error { return <-closed })
	if err := <-c.first; err != nil && !errors.Is(err, queue.ErrClosed) {
		t.Errorf("the first call returns %v", err)
	}
	c.corrected(t)
}

// The first call, and a call that comes while rows are being corrected, are answered when
// the last part of the corrections is durable, even if they change nothing else.
func TestC8_CallsWaitForAllCorrections(t *testing.T) {
	calls := map[string]func(context.Context, *machine.Machine) error{
		"Maintain": maintain,
		"Heartbeat": func(ctx context.Context, m *machine.Machine) error {
			_, err := m.Heartbeat(ctx, start, queue.Worker{Name: "w"}, nil)
			return err
		},
		"Claim": func(ctx context.Context, m *machine.Machine) error {
			_, err := m.Claim(ctx, start, queue.Claim{Worker: "w", Kinds: []string{"other"}, Max: 1, Lease: 1})
			return err
		},
	}
	for name, call := range calls {
		t.Run("First"+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := openAhead(t, call)
				c.answeredInTime(t, c.first)
			})
		})
		t.Run("Second"+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, second := openAhead(t, maintain), make(chan error, 1)
				go func() { second <- call(t.Context(), c.Machine) }()
				c.answeredInTime(t, second)
				close(c.rows.gate)
			})
		})
	}
}

// answeredInTime applies batches one at a time until a call is answered, and checks that
// the last batch was then durable.
func (c *correcting) answeredInTime(t *testing.T, answer <-chan error) {
	t.Helper()
	for {
		synctest.Wait()
		select {
		case err := <-answer:
			if err != nil {
				t.Error(err)
			}
			c.corrected(t)
			return
		default:
			c.rows.gate <- struct{}{}
		}
	}
}
