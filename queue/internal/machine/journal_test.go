package machine_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// pausedRows call a function in the middle of a step, when it reads a row.
type pausedRows struct {
	*rows
	entered chan struct{} // receives when a batch is about to be applied
	left    int           // the number of reads until then
	then    func()
}

func (r *pausedRows) Apply(batch []machine.Change) error {
	r.entered <- struct{}{}
	return r.rows.Apply(batch)
}

func (r *pausedRows) Get(key string) ([]byte, error) {
	if r.left--; r.left == 0 {
		r.then()
	}
	return r.rows.Get(key)
}

// A caller that waits for a sync applies the changes of all callers, but no part of a
// step that is not complete.
func TestC6_StepsAreNotCutApart(t *testing.T) {
	r := &pausedRows{rows: newRows(), entered: make(chan struct{}, 10)}
	m, err := machine.Open(r, machine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1e9, 0)
	var source queue.IDs
	ids := []queue.ID{source.New(now), source.New(now), source.New(now), source.New(now)}
	submit := func(id queue.ID) {
		if _, err := m.Submit(t.Context(), now, []queue.NewTask{{ID: id, Spec: queue.Spec{Kind: "k"}}}); err != nil {
			t.Error(err)
		}
	}
	submit(ids[0])
	submit(ids[1])
	<-r.entered
	<-r.entered

	r.gate = make(chan struct{})
	third, fourth := make(chan struct{}), make(chan struct{})
	go func() { submit(ids[2]); close(third) }()
	<-r.entered // the call applies its own changes
	go func() { submit(ids[3]); close(fourth) }()
	for c := 0; c < 4; { // until the last caller has only its own changes and those of others to apply
		stats, err := m.Stats(t.Context(), now)
		if err != nil {
			t.Fatal(err)
		}
		c = stats.Queues["default"].States[queue.Waiting]
	}
	var crashed *rows
	r.left = 2 // a cancel reads each of the two tasks
	r.then = func() {
		r.gate <- struct{}{}
		r.gate <- struct{}{}
		<-third
		<-fourth
		crashed = r.crash()
		close(r.gate)
	}
	n, err := m.Command(t.Context(), now, queue.Command{Do: queue.OrderCancel, Filter: queue.Filter{IDs: ids[:2]}})
	if err != nil || n != 2 || crashed == nil {
		t.Fatalf("%d were cancelled, and the error is %v", n, err)
	}
	for _, id := range ids {
		if crashed.all["t"+string(id[:])] == nil {
			t.Errorf("task %s has been applied as cancelled, in the middle of the call", id)
		}
	}
}

// A call whose context ends does not wait for a stalled disk, whichever of the waiting
// callers would write next. Its changes are there when the disk continues.
func TestC6_ContextsEndTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRows()
		m := open(t, r)
		r.gate = make(chan struct{})
		var ids queue.IDs
		submit := func(ctx context.Context) chan error {
			task, answer := newTask(&ids, queue.Spec{}), make(chan error, 1)
			go func() {
				_, err := m.Submit(ctx, start, []queue.NewTask{task})
				answer <- err
			}()
			synctest.Wait()
			return answer
		}
		ctx, cancel := context.WithCancel(t.Context())
		leaving := []chan error{submit(ctx), submit(ctx), submit(ctx)} // one call writes, two wait to write
		staying := submit(t.Context())
		cancel()
		for i, answer := range leaving {
			if err := <-answer; !errors.Is(err, context.Canceled) || !errors.Is(err, queue.ErrUnavailable) {
				t.Errorf("call %d is answered %v", i, err)
			}
		}
		select {
		case err := <-staying:
			t.Fatalf("the call that stays is answered %v before the disk goes on", err)
		default:
		}
		close(r.gate)
		if err := <-staying; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if n := len(r.crash().all); n < len(leaving)+1 {
			t.Errorf("of %d tasks %d are durable", len(leaving)+1, n)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A caller that leaves just after it was chosen to write does not keep the others from
// writing.
func TestC6_LeavingTheLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for others := range 3 {
			r := newRows()
			m := open(t, r)
			r.gate = make(chan struct{})
			var ids queue.IDs
			var all sync.WaitGroup
			submit := func(ctx context.Context) {
				task := newTask(&ids, queue.Spec{})
				all.Go(func() {
					if _, err := m.Submit(ctx, start, []queue.NewTask{task}); err != nil && ctx.Err() == nil {
						t.Error(err)
					}
				})
				synctest.Wait()
			}
			submit(t.Context()) // writes
			ctx, cancel := context.WithCancel(t.Context())
			submit(ctx) // is next
			for range others {
				submit(t.Context())
			}
			go cancel()
			r.gate <- struct{}{}
			close(r.gate)
			all.Wait()
			submit(t.Context())
			all.Wait()
			if n := len(r.crash().all); n != others+3 {
				t.Errorf("with %d others %d tasks are durable", others, n)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// A task does not start on the slot of a lost lease while a crash could bring that lease
// back.
func TestC12_RoomOfALostLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRows()
		m := open(t, r)
		var ids queue.IDs
		ctx := t.Context()
		if err := m.Configure(ctx, start, "", queue.Change{Set: queue.Settings{Max: 1}}); err != nil {
			t.Fatal(err)
		}
		tasks := []queue.NewTask{
			newTask(&ids, queue.Spec{Options: queue.Options{MaxCrashes: 1}}),
			newTask(&ids, queue.Spec{}),
		}
		if _, err := m.Submit(ctx, start, tasks); err != nil {
			t.Fatal(err)
		}
		claim := func(now time.Time) int {
			c := queue.Claim{Worker: "w", Kinds: []string{tasks[0].Kind}, Max: 2, Lease: time.Minute, Remote: true}
			got, err := m.Claim(ctx, now, c)
			if err != nil {
				t.Error(err)
			}
			return len(got.Tasks)
		}
		if n := claim(start); n != 1 {
			t.Fatalf("%d tasks have started", n)
		}
		r.gate = make(chan struct{})
		late := start.Add(time.Hour)
		go func() { _, _ = m.Maintain(ctx, late, 0) }()
		synctest.Wait()
		startsWhenDurable(t, r, func() int { return claim(late) })
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
}

// startsWhenDurable checks that no task starts before the gate of the rows opens, and
// that one starts afterwards.
func startsWhenDurable(t *testing.T, r *rows, claim func() int) {
	t.Helper()
	var started atomic.Int32
	go func() { started.Store(int32(claim())) }()
	synctest.Wait()
	if n := started.Load(); n != 0 {
		t.Errorf("%d tasks have started before what makes room for them is durable", n)
	}
	close(r.gate)
	synctest.Wait()
	if n := started.Load(); n != 1 {
		t.Errorf("%d tasks have started afterwards", n)
	}
}

// A task does not start on the slot of a settled lease while a crash could bring that
// lease back: its worker may live on in another process.
func TestC12_RoomOfARemoteLease(t *testing.T) {
	for _, limits := range []queue.Settings{
		{Max: 1}, {PerKey: 1}, {Caps: stint.Caps{Normal: 1}}, {Total: 1}, {TotalPerKey: 1},
	} {
		for _, on := range []queue.OutcomeKind{
			queue.OutcomeSuccess, queue.OutcomeFailure, queue.OutcomeSnooze, queue.OutcomeRelease,
		} {
			synctest.Test(t, func(t *testing.T) { roomOfARemoteLease(t, limits, on) })
		}
	}
}

func roomOfARemoteLease(t *testing.T, limits queue.Settings, on queue.OutcomeKind) {
	t.Helper()
	p := newProcess(t)
	if err := p.Configure(t.Context(), start, "", queue.Change{Set: limits}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		submit(t, p.Machine, newTask(&p.ids, queue.Spec{Options: queue.Options{Key: "k"}}))
	}
	task := p.one(true)
	p.rows.gate = make(chan struct{})
	go func() { _ = p.settle(task, on) }()
	synctest.Wait()
	var started atomic.Int32
	go func() {
		tasks, err := p.claim(1, true)
		started.Store(int32(len(tasks)))
		if err != nil {
			t.Error(err)
		}
	}()
	synctest.Wait()
	if n := started.Load(); n != 0 {
		t.Errorf("%+v: %d tasks have started before it is durable that the lease ended by %s", limits, n, on)
	}
	close(p.rows.gate)
	synctest.Wait()
	if n := started.Load(); n != 1 {
		t.Errorf("%+v: %d tasks have started afterwards", limits, n)
	}
}

// slowRows take some time for each batch, as a disk does.
type slowRows struct {
	*rows
	batches atomic.Int64
}

func (r *slowRows) Apply(batch []machine.Change) error {
	r.batches.Add(1)
	time.Sleep(time.Millisecond)
	return r.rows.Apply(batch)
}

// Callers that write again as soon as they are answered share every batch, and not every
// other one. With one processor all callers that were woken continue before the next
// batch is taken, however busy the machine is.
func TestJournal_CallersShareBatches(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, callers := range []int{2, 4, 8} {
		synctest.Test(t, func(t *testing.T) {
			r := &slowRows{rows: newRows()}
			m, err := machine.Open(r, machine.Config{})
			if err != nil {
				t.Fatal(err)
			}
			const each = 200
			var source queue.IDs
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					for range each {
						now := time.Now()
						task := queue.NewTask{ID: source.New(now), Spec: queue.Spec{Kind: "k"}}
						if _, err := m.Submit(t.Context(), now, []queue.NewTask{task}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			if batches := r.batches.Load(); batches > each*3/2 { // otherwise there would be twice as many batches
				t.Errorf("%d callers had their %d calls each in %d batches", callers, each, batches)
			}
		})
	}
}
