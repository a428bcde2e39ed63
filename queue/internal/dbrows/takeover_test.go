package dbrows_test

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/dbrows"
	leaselog "github.com/stintgo/stint/queue/internal/lease"
	"github.com/stintgo/stint/queue/internal/machine"
	"github.com/stintgo/stint/queue/storetest"
)

// TestModel_LeaderChanges makes random calls while other processes take the lead in the middle
// of calls: before a call, before its batch reaches the server, after the batch was made and
// before its answer, after the answer and before the caller has received it, and while the
// next leader opens. What was not answered is asked again of the next leader. Every answer and
// every task is compared with the model after each call, so nothing is lost, nothing is made
// twice, and no task has two leases. Leaders that were deposed are asked too: they answer
// nothing but repetitions of what was answered before.
func TestModel_LeaderChanges(t *testing.T) {
	random := seeded.Rand(t)
	synctest.Test(t, func(t *testing.T) {
		r := &relay{t: t, random: rand.New(rand.NewPCG(random.Uint64(), 0)), server: newServer()}
		storetest.Model(t, r.harness, 2000)
		t.Logf("%d takeovers: %v; %d answers of leaders that were deposed are refused",
			r.server.term.Epoch, r.counts, r.refused)
		for p := beforeCall; p < points; p++ {
			if r.counts[p] < 20 {
				t.Errorf("only %d takeovers %s", r.counts[p], p)
			}
		}
		if r.refused < 50 {
			t.Errorf("only %d answers of deposed leaders", r.refused)
		}
	})
}

// point is a point of a call at which another process takes the lead.
type point int

const (
	never       point = iota
	beforeCall        // the leader has not noticed it when it is asked
	beforeBatch       // the batch, or the entries of the lease log, have not reached the server
	afterBatch        // the server has them, and the leader does not know it
	beforeRead        // a row has not been read
	afterAnswer       // the leader has answered, and the caller does not receive it
	whileOpening
	points
)

func (p point) String() string {
	return [...]string{
		"never", "before a call", "before a batch", "after a batch", "before a read", "after an answer", "while opening",
	}[p]
}

// process is one that leads, or has led.
type process struct {
	*machine.Machine
	rows *dbrows.Rows

	// Guarded by the relay's mu.
	cut     bool // it does not reach the server
	opening int  // calls of the server until another process takes the lead, while it opens; 0: none does
	asked   bool // the present call has been made at this process
}

// relay is a store at the process that leads, as a node of a cluster has one: it asks the next
// leader what the leader before has not answered. Calls are made one at a time.
type relay struct {
	queue.Store // Listen and Watch, which the model does not call

	t      *testing.T
	server *server
	cfg    storetest.Config

	mu      sync.Mutex // guards the fields below
	random  *rand.Rand
	leader  *process
	former  *process // the leader before; it may not know that it was deposed
	point   point    // at which the present call loses its leader
	claims  bool     // the present call is a claim, which takes effect in the lease log
	spared  bool     // the present call keeps its leader
	made    bool     // the present call has taken effect
	started []queue.Task
	took    []storetest.Takeover
	counts  [points]int
	refused int
	taking  sync.WaitGroup // takeovers in the middle of a call
}

const relayLease = 300 * time.Millisecond

func (r *relay) harness(t *testing.T, cfg storetest.Config) storetest.Harness {
	t.Helper()
	r.cfg = cfg
	t.Cleanup(func() {
		r.retire(r.former)
		r.retire(r.leader)
	})
	reopen := func(t *testing.T) queue.Store {
		t.Helper()
		r.takeOver(r.leader)
		r.took = nil // the model knows of this one
		return r
	}
	r.leader = r.open(0)
	return storetest.Harness{
		Store: r, Durable: true, Remote: true, Reopen: reopen, Break: func(int) {}, Takeovers: r.takeovers,
	}
}

// takeovers returns what has happened since the last call.
func (r *relay) takeovers() []storetest.Takeover {
	r.mu.Lock()
	defer r.mu.Unlock()
	took := r.took
	r.took = nil
	return took
}

func (r *relay) oneIn(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.random.IntN(n) == 0
}

// fault is what happens to a call of a process to the server.
func (r *relay) fault(p *process, o op) (f fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changes, reads := o == opApply || o == opPut, o == opGet || o == opScan
	switch {
	case p.cut:
		return fault{before: errBroken}
	case p.opening > 0:
		if p.opening--; p.opening > 0 {
			return fault{}
		}
		r.strikeLocked(p, whileOpening)
		return fault{before: pick(r.random, errBroken, nil)}
	case p != r.leader || !p.asked:
		return fault{}
	case changes && r.point == beforeBatch, reads && r.point == beforeRead:
		r.strikeLocked(p, r.point)
		return fault{before: pick(r.random, errBroken, nil)} // without an error, it reaches the server too late
	case changes && r.point == afterBatch:
		r.point = never
		r.taking.Add(1)
		return fault{after: pick(r.random, errBroken, nil), then: func() {
			defer r.taking.Done()
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.made = o == opPut || !r.claims; o == opPut {
				r.started = r.server.lastPut()
			}
			r.strikeLocked(p, afterBatch)
		}}
	}
	return fault{}
}

func pick[T any](random *rand.Rand, of ...T) T { return of[random.IntN(len(of))] }

// strikeLocked has another process take the lead from p, which is in the middle of a call of
// the server and then reaches it again. It unlocks mu meanwhile.
func (r *relay) strikeLocked(p *process, at point) {
	r.point = never
	r.counts[at]++
	r.taking.Add(1)
	r.mu.Unlock()
	r.takeOver(p)
	r.taking.Done()
	r.mu.Lock()
	p.cut = false
}

// takeOver cuts a process off until its lease has ended, and has another one lead.
func (r *relay) takeOver(p *process) {
	r.mu.Lock()
	p.cut = true
	away := relayLease + 1
	if r.random.IntN(8) == 0 {
		away += 4 * time.Second // longer than callers wait for the server
	}
	r.mu.Unlock()
	time.Sleep(away)
	r.open(1)
}

// open opens the store in another process, which leads then, unless a further one takes the lead
// meanwhile. depth is how many processes are opening it.
func (r *relay) open(depth int) *process {
	const depthMost, callsMost = 3, 14 // of the server, while a process opens
	p := &process{}
	if depth > 0 && depth < depthMost && r.oneIn(3) {
		r.mu.Lock()
		p.opening = 1 + r.random.IntN(callsMost)
		r.mu.Unlock()
	}
	before := r.present()
	err := r.openAt(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	p.opening = 0
	if r.leader != before { // another process has led meanwhile
		r.mu.Unlock()
		r.retire(p)
		r.mu.Lock()
		return r.leader
	}
	if err != nil { // this may be a goroutine of a call that holds locks, so that Fatal would hang
		panic("no process can lead: " + err.Error())
	}
	r.succeedLocked(p)
	return p
}

func (r *relay) present() *process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leader
}

// openAt opens the store in a process.
func (r *relay) openAt(p *process) (err error) {
	c := r.server.connect(r.t, func(o op) fault { return r.fault(p, o) })
	p.rows, err = dbrows.Open(r.t.Context(), c, dbrows.Config{Server: "the server", Lease: relayLease})
	if err != nil {
		p.rows = nil
		return err
	}
	p.Machine, err = machine.Open(p.rows, machine.Config{
		MaxPayload: r.cfg.MaxPayload, MaxResult: r.cfg.MaxResult, MaxCheckpoint: r.cfg.MaxCheckpoint,
		WatchBuffer: r.cfg.WatchBuffer, Epoch: p.rows.Epoch(), Keep: 2000,
		Room: p.rows.Room, Stalled: p.rows.Stalled, Leases: p.rows.LeaseLog(),
	})
	if err == nil {
		p.rows.Opened()
	}
	return err
}

// succeedLocked makes a process the leader, and records the takeover.
func (r *relay) succeedLocked(p *process) {
	o := storetest.Takeover{Made: r.made, Started: r.started, Progress: make(map[queue.ID]queue.Progress)}
	r.made, r.started = false, nil
	running := queue.Filter{States: []queue.State{queue.Running}}
	r.mu.Unlock()
	found, err := p.Find(r.t.Context(), running, queue.Page{Limit: 1000})
	r.mu.Lock()
	if err != nil {
		r.t.Error(err)
	}
	for i := range found {
		o.Progress[found[i].ID] = found[i].Progress
	}
	r.took = append(r.took, o)
	retired := r.former
	r.former, r.leader = r.leader, p
	r.mu.Unlock()
	r.retire(retired)
	r.mu.Lock()
}

// retire closes a process that has led.
func (r *relay) retire(p *process) {
	if p == nil || p.rows == nil {
		return
	}
	r.mu.Lock()
	p.cut = false
	r.mu.Unlock()
	p.rows.GiveUpSoon()
	end := p.rows.Close
	if p.Machine != nil {
		end = p.Close
	}
	if err := end(); err != nil && !errors.Is(err, queue.ErrLed) {
		r.t.Error(err)
	}
}

// answerOf makes a call at the leader, and again at the next one until it is answered. changed says
// that an answer is that of a call that has changed something in the database: what comes from
// memory counts only while the leader leads.
func answerOf[T any](r *relay, changed func(T) bool, call func(queue.Store) (T, error)) (answer T, err error) {
	askFormer(r, changed, call)
	r.mu.Lock()
	r.made, r.started = false, nil
	if r.point = never; !r.spared && r.random.IntN(4) == 0 {
		// Most calls write nothing, and so have no batch to be struck at.
		r.point = pick(r.random, beforeCall, beforeBatch, beforeBatch, beforeBatch, afterBatch, afterBatch, afterBatch,
			beforeRead, afterAnswer)
	}
	p := r.leader
	early := r.point == beforeCall
	if early {
		r.point = never
		r.counts[beforeCall]++
	}
	r.mu.Unlock()
	if early {
		r.takeOver(p)
		r.reach(p)
	}
	for {
		r.askedAt(p, true)
		answer, err = call(p)
		r.taking.Wait()
		r.askedAt(p, false)
		answered := isAnswer(p, changed, answer, err)
		if answered && r.losesAnswer() {
			r.mu.Lock()
			r.made = err == nil && !isRead(answer)
			r.mu.Unlock()
			r.keepStarted(answer)
			r.takeOver(p)
			answered = false
		}
		if answered {
			r.answered(p)
			return answer, err
		}
		if p == r.present() {
			r.t.Fatalf("the leader does not answer: %v", err)
		}
		p = r.present()
	}
}

// isAnswer reports whether a process answers a call.
func isAnswer[T any](p *process, changed func(T) bool, answer T, err error) bool {
	switch {
	case errors.Is(err, queue.ErrUnavailable), errors.Is(err, queue.ErrClosed):
		return false
	case err == nil && changed(answer):
		return true
	}
	return p.rows.Leads()
}

// askFormer makes the call at the leader before, sometimes, which must not answer.
func askFormer[T any](r *relay, changed func(T) bool, call func(queue.Store) (T, error)) {
	r.mu.Lock()
	p := r.former
	asks := p != nil && r.random.IntN(3) == 0
	r.mu.Unlock()
	if !asks {
		return
	}
	r.reach(p)
	if answer, err := call(p); isAnswer(p, changed, answer, err) && !isRepeated(answer) {
		r.t.Errorf("a deposed leader answers %+v, %v", answer, err)
	}
	r.refused++
}

// isRead reports whether an answer is that of a call that changes nothing.
func isRead(answer any) bool {
	switch answer.(type) {
	case []queue.Task, []queue.Reason, []queue.ScheduleState, map[string]queue.Configured, queue.Stats:
		return true
	}
	return false
}

// isRepeated reports whether an answer may be that of a call which was answered before: then it
// stays true, and a deposed leader may give it.
func isRepeated(answer any) bool {
	switch answer.(type) {
	case []queue.Receipt, []error:
		return true
	}
	return false
}

// reach connects a process with the server again.
func (r *relay) reach(p *process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.cut = false
}

// askedAt records that the present call is made at a process, or that the process has returned.
func (r *relay) askedAt(p *process, asked bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.asked = asked
}

// losesAnswer reports whether the answer of the present call is lost.
func (r *relay) losesAnswer() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.point != afterAnswer {
		return false
	}
	r.point = never
	r.counts[afterAnswer]++
	return true
}

// keepStarted records the tasks of a claim whose answer is lost.
func (r *relay) keepStarted(answer any) {
	if claimed, ok := answer.(queue.Claimed); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.started = claimed.Tasks
	}
}

// answered records that a process has answered, perhaps after it was deposed: the call counts as
// made before.
func (r *relay) answered(p *process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p != r.leader {
		last := &r.took[len(r.took)-1]
		last.Made, last.Answered = true, true
	}
}

// lastPut returns the tasks whose leases were recorded last.
func (s *server) lastPut() (tasks []queue.Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := uint64(0)
	for _, l := range s.leases {
		last = max(last, l.put)
	}
	for _, l := range s.leases {
		if l.put < last {
			continue
		}
		leaselog.DecodeRow(l.entries, func(e machine.LeaseEntry) {
			tasks = append(tasks, queue.Task{ID: e.ID, Lease: queue.Lease{Token: e.Token}})
		})
	}
	slices.SortFunc(tasks, func(a, b queue.Task) int { return cmp.Compare(a.Lease.Token, b.Lease.Token) })
	return tasks
}

func nothing[T any](T) bool { return false }

func (r *relay) Submit(ctx context.Context, now time.Time, tasks []queue.NewTask) ([]queue.Receipt, error) {
	accepts := func(receipts []queue.Receipt) bool {
		return slices.ContainsFunc(receipts, func(r queue.Receipt) bool { return !r.Existing })
	}
	return answerOf(r, accepts, func(s queue.Store) ([]queue.Receipt, error) { return s.Submit(ctx, now, tasks) })
}

func (r *relay) Claim(ctx context.Context, now time.Time, c queue.Claim) (queue.Claimed, error) {
	r.mark(true)
	defer r.mark(false)
	starts := func(c queue.Claimed) bool { return len(c.Tasks) > 0 }
	return answerOf(r, starts, func(s queue.Store) (queue.Claimed, error) { return s.Claim(ctx, now, c) })
}

// mark records that the present call is a claim.
func (r *relay) mark(claims bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.claims = claims
}

func (r *relay) Settle(ctx context.Context, now time.Time, outcomes []queue.Outcome) ([]error, error) {
	settled := func(errs []error) bool { return errors.Join(errs...) == nil }
	return answerOf(r, settled, func(s queue.Store) ([]error, error) { return s.Settle(ctx, now, outcomes) })
}

func (r *relay) Heartbeat(
	ctx context.Context, now time.Time, w queue.Worker, heartbeats []queue.Heartbeat,
) ([]queue.Answer, error) {
	return answerOf(r, nothing, func(s queue.Store) ([]queue.Answer, error) {
		return s.Heartbeat(ctx, now, w, heartbeats)
	})
}

func (r *relay) Command(ctx context.Context, now time.Time, c queue.Command) (int, error) {
	changes := func(n int) bool { return n > 0 }
	return answerOf(r, changes, func(s queue.Store) (int, error) { return s.Command(ctx, now, c) })
}

func (r *relay) Maintain(ctx context.Context, now time.Time, limit int) (time.Time, error) {
	return answerOf(r, nothing, func(s queue.Store) (time.Time, error) { return s.Maintain(ctx, now, limit) })
}

// Find is as [queue.Store] says. The model compares all pages with one state of the model, so
// the leader changes at the first one only.
func (r *relay) Find(ctx context.Context, f queue.Filter, p queue.Page) ([]queue.Task, error) {
	r.spared = !p.After.IsZero()
	defer func() { r.spared = false }()
	return answerOf(r, nothing, func(s queue.Store) ([]queue.Task, error) { return s.Find(ctx, f, p) })
}

func (r *relay) Explain(ctx context.Context, now time.Time, id queue.ID) ([]queue.Reason, error) {
	return answerOf(r, nothing, func(s queue.Store) ([]queue.Reason, error) { return s.Explain(ctx, now, id) })
}

func (r *relay) Stats(ctx context.Context, now time.Time) (queue.Stats, error) {
	return answerOf(r, nothing, func(s queue.Store) (queue.Stats, error) { return s.Stats(ctx, now) })
}

func (r *relay) Settings(ctx context.Context) (map[string]queue.Configured, error) {
	return answerOf(r, nothing, func(s queue.Store) (map[string]queue.Configured, error) {
		return s.Settings(ctx)
	})
}

func (r *relay) Schedules(ctx context.Context) ([]queue.ScheduleState, error) {
	return answerOf(r, nothing, func(s queue.Store) ([]queue.ScheduleState, error) { return s.Schedules(ctx) })
}

// answerError is answerOf for calls that return only an error. ctx is that of the call; other
// processes open the store with their own.
func answerError(ctx context.Context, r *relay, call func(context.Context, queue.Store) error) error {
	_, err := answerOf(r, nothing, func(s queue.Store) (struct{}, error) { return struct{}{}, call(ctx, s) })
	return err
}

func (r *relay) Configure(ctx context.Context, now time.Time, name string, c queue.Change) error {
	return answerError(ctx, r, func(ctx context.Context, s queue.Store) error { return s.Configure(ctx, now, name, c) })
}

func (r *relay) PauseQueue(ctx context.Context, now time.Time, name string, p *queue.Pause) error {
	return answerError(ctx, r, func(ctx context.Context, s queue.Store) error { return s.PauseQueue(ctx, now, name, p) })
}

func (r *relay) Reschedule(ctx context.Context, now time.Time, c queue.Reschedule) error {
	return answerError(ctx, r, func(ctx context.Context, s queue.Store) error { return s.Reschedule(ctx, now, c) })
}

// Close ends the process that leads in an orderly way.
func (r *relay) Close() error { return r.present().Close() }
