package storetest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/reference"
)

func (m *model) submits() error {
	var call []queue.NewTask
	for range 1 + m.rnd.IntN(3) {
		t := queue.NewTask{ID: m.trial.ids.New(m.now), Spec: m.spec()}
		if len(call) > 0 && m.rnd.IntN(4) == 0 {
			t.After = append(t.After, call[0].ID)
		}
		call = append(call, t)
	}
	if m.rnd.IntN(12) == 0 {
		call = m.last // the call is repeated, perhaps when some of it is forgotten
	}
	m.last, m.with = call, call
	got, gotErr := m.Store.Submit(m.Context(), m.now, call)
	want, wantErr := m.right.Submit(m.Context(), m.now, call)
	if done, err := both(gotErr, wantErr); !done {
		if gotErr != nil && wantErr != nil {
			err = nil // which of several mistakes is found first is open
		}
		return err
	}
	for _, t := range call {
		m.ids = append(m.ids, t.ID)
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("the receipts are %+v, want %+v", got, want)
	}
	return nil
}

// spec is a task with a little of everything.
func (m *model) spec() queue.Spec {
	r := m.rnd
	s := queue.Spec{
		Kind:    pick(r, "k0", "k1", "k2"),
		Payload: []byte(pick(r, "p", "q", "r", "s", "t", "u")),
		Options: queue.Options{
			Queue:       pick(r, "", "", "b"),
			Tier:        stint.Priority(r.IntN(stint.Tiers)) + stint.Lowest,
			Key:         pick(r, "", "", "x", "y", "z"),
			Unique:      sometimes(r, 6, pick(r, "u0", "u1", "u2")),
			Group:       sometimes(r, 6, pick(r, "g0", "g1")),
			After:       sometimes(r, 6, m.known(1+r.IntN(2))),
			Batch:       sometimes(r, 6, m.batches[r.IntN(2)]),
			AfterAny:    sometimes(r, 8, m.known(1+r.IntN(2))),
			RunAt:       sometimes(r, 4, m.now.Add(m.soon(20*time.Second)-time.Second)),
			MaxAttempts: r.IntN(4),
			MaxCrashes:  r.IntN(4),
			Deadline:    sometimes(r, 8, m.now.Add(m.soon(time.Minute)-time.Second)),
		},
	}
	if s.Unique != "" {
		s.UniqueFor = sometimes(r, 2, m.soon(time.Hour))
	}
	if s.Batch.IsZero() {
		s.AfterBatch = sometimes(r, 10, pick(r, m.batches[:]...))
	}
	return s
}

// lives are the lives of tasks that are there yet.
func (m *model) lives(ids ...queue.ID) (text string) {
	for _, t := range m.find(queue.Filter{IDs: ids}) {
		text += fmt.Sprintf("task %s of %s, tier %s, key %q, group %q\n%s", t.ID, t.Kind, t.Tier, t.Key, t.Group, life(t))
	}
	return text
}

func (m *model) claims() error {
	if m.right.Late(m.now) { // whether a claim ends those or leaves that to Maintain is open
		if err := m.maintains(); err != nil {
			return err
		}
	}
	r := m.rnd
	q := queue.Claim{
		Worker: pick(r, "w0", "w1", "w2"), Queue: pick(r, "", "default", "b"), Kinds: pick(r, []string{"k0", "k1", "k2"},
			[]string{"k0", "k1"}, []string{"k2"}, []string{"k0", "unknown"}, nil),
		Max: 1 + r.IntN(4), Lease: time.Second + m.soon(20*time.Second), Remote: r.IntN(2) == 0 || m.Remote,
		Bytes: sometimes(r, 4, 1+r.IntN(6<<10)),
	}
	m.with = q
	got, err := m.Store.Claim(m.Context(), m.now, q)
	if err != nil {
		return err
	}
	for _, t := range got.Tasks {
		if err := checkTask(&t); err != nil {
			return fmt.Errorf("the claimed task %s: %w", t.ID, err)
		}
	}
	m.leases = append(m.leases, got.Tasks...)
	return m.right.Follow(m.now, q, got)
}

// lease is a lease that was given lately, or, sometimes, long ago.
func (m *model) lease() queue.Task {
	back := pick(m.rnd, 4, 12, 12, 60)
	t := m.leases[max(0, len(m.leases)-1-m.rnd.IntN(back))]
	t.Lease.Token += sometimes(m.rnd, 30, queue.Token(1))
	return t
}

// outcomesMost is the largest number of outcomes in a call of Settle.
const outcomesMost = 3

func (m *model) settles() error {
	if len(m.leases) == 0 {
		return nil
	}
	var outcomes []queue.Outcome
	for range m.rnd.IntN(outcomesMost + 1) {
		t := m.lease()
		outcomes = append(outcomes, queue.Outcome{
			ID: t.ID, Token: t.Lease.Token, Error: "e", Permanent: m.rnd.IntN(10) == 0, Result: []byte("r"),
			Kind: pick(m.rnd, queue.OutcomeSuccess, queue.OutcomeFailure, queue.OutcomeFailure, queue.OutcomeSnooze,
				queue.OutcomeRelease, queue.OutcomeKind(queue.OnLost)), // which is none
			RunAt:      sometimes(m.rnd, 2, m.now.Add(m.soon(10*time.Second)-time.Second)),
			Checkpoint: sometimes(m.rnd, 3, []byte(pick(m.rnd, "c0", "c1"))),
		})
	}
	m.with = outcomes
	got, gotErr := m.Store.Settle(m.Context(), m.now, outcomes)
	want, wantErr := m.right.Settle(m.Context(), m.now, outcomes)
	if done, err := both(gotErr, wantErr); !done {
		return err
	}
	for i := range outcomes {
		if _, err := both(got[i], want[i]); err != nil {
			return fmt.Errorf("outcome %d: %w\n%s", i, err, m.lives(outcomes[i].ID))
		}
	}
	return nil
}

func (m *model) heartbeats() error {
	if len(m.leases) == 0 {
		return nil
	}
	var heartbeats []queue.Heartbeat
	for range m.rnd.IntN(5) {
		t := m.lease()
		heartbeats = append(heartbeats, queue.Heartbeat{
			ID: t.ID, Token: t.Lease.Token, Lease: m.soon(30 * time.Second),
			Progress: queue.Progress{Done: m.rnd.Int64N(3)}, Checkpoint: sometimes(m.rnd, 3, []byte("b")),
		})
	}
	w := queue.Worker{Name: pick(m.rnd, "w0", "w1"), Kinds: map[string][]string{"default": {"k0", "k1"}}}
	m.with = heartbeats
	got, gotErr := m.Store.Heartbeat(m.Context(), m.now, w, heartbeats)
	want, wantErr := m.right.Heartbeat(m.Context(), m.now, w, heartbeats)
	if done, err := both(gotErr, wantErr); !done {
		return err
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("the answers are %+v, want %+v", got, want)
	}
	return nil
}

// filter is one that finds some of the tasks.
func (m *model) filter() queue.Filter {
	r := m.rnd
	return queue.Filter{
		IDs: sometimes(r, 2, m.known(r.IntN(4))), Queue: sometimes(r, 4, pick(r, "default", "b")),
		Kind: sometimes(r, 4, "k0"), Key: sometimes(r, 5, "x"), Group: sometimes(r, 8, "g0"),
		Batch:  sometimes(r, 8, m.batches[0]),
		Worker: sometimes(r, 8, "w0"), Error: sometimes(r, 8, "e"),
		States: sometimes(r, 3, []queue.State{pick(r, queue.States()...), pick(r, queue.States()...)}),
		Ending: sometimes(r, 8, strconv.FormatInt(r.Int64N(16), 16)),
		From:   sometimes(r, 8, m.now.Add(-m.soon(time.Minute))), To: sometimes(r, 8, m.now.Add(-m.soon(time.Minute))),
	}
}

func (m *model) command() error {
	c := queue.Command{
		Do: pick(m.rnd, queue.OrderPause, queue.OrderResume, queue.OrderResume, queue.OrderCancel, queue.OrderRetry,
			queue.OrderRetry, queue.OrderForget, queue.Order(queue.OnDue), queue.OrderEdit, queue.OrderEdit),
		Filter: m.filter(), All: m.rnd.IntN(2) == 0, Limit: m.rnd.IntN(4), By: "b", Reason: "r",
	}
	if c.Do == queue.OrderEdit {
		c.Edit = m.edit()
	}
	m.with = c
	got, gotErr := m.Store.Command(m.Context(), m.now, c)
	want, wantErr := m.right.Command(m.Context(), m.now, c)
	if done, err := both(gotErr, wantErr); !done {
		return err
	}
	if got != want {
		return fmt.Errorf("it changes %d, want %d", got, want)
	}
	return nil
}

// edit returns an edit that sets some of the fields, sometimes none.
func (m *model) edit() *queue.Edit {
	r := m.rnd
	return &queue.Edit{
		Tier: sometimes(r, 2, new(pick(r, stint.Lowest, stint.Low, stint.Normal, stint.Highest))),
		Key:  sometimes(r, 2, new(pick(r, "", "x", "y"))), RunAt: sometimes(r, 3, new(m.now.Add(m.soon(10*time.Second)))),
		Deadline: sometimes(r, 4, new(m.now.Add(m.soon(time.Minute)))),
		Labels:   sometimes(r, 4, map[string]string{"edited": pick(r, "", "1", "2")}),
	}
}

// sets changes what is set for a queue. Its rates divide a second: how others are
// rounded is open.
func (m *model) sets() error {
	r := m.rnd
	s := queue.Settings{
		Max: sometimes(r, 2, 1+r.IntN(6)), PerKey: sometimes(r, 2, 1+r.IntN(3)), Pending: sometimes(r, 4, 10+r.IntN(30)),
		Rate:    sometimes(r, 4, queue.Rate{PerSecond: 2, Burst: 3}),
		KeyRate: sometimes(r, 4, queue.Rate{PerSecond: 1, Burst: 2}),
		Caps:    sometimes(r, 4, stint.Caps{Lowest: r.IntN(2), Low: r.IntN(4), High: r.IntN(5)}),
	}
	c := only(s)
	if r.IntN(3) == 0 {
		c = queue.Change{Set: s, Unset: sometimes(r, 2, []queue.Field{queue.FieldPending})}
		c.Set.Pending = 0
	}
	c.Operator = r.IntN(3) == 0
	if r.IntN(4) == 0 {
		unlimited := func(f queue.Field) bool { return f == queue.FieldMax }
		c.Unlimited = []queue.Field{queue.FieldMax}
		c.Set.Max, c.Unset = 0, slices.DeleteFunc(c.Unset, unlimited)
	}
	if r.IntN(4) == 0 {
		c = queue.Change{Key: pick(r, "x", "y"), Operator: c.Operator, Unset: []queue.Field{queue.FieldMax}}
		if r.IntN(3) > 0 {
			c.Set, c.Unset = queue.Settings{Max: 1 + r.IntN(3)}, nil
		}
	}
	name := pick(r, "default", "b", "")
	if name == "" {
		c.Set.Total, c.Set.TotalPerKey = sometimes(r, 2, 1+r.IntN(6)), 0
		if c.Key == "" {
			c.Set.TotalPerKey = sometimes(r, 2, 1+r.IntN(3))
		}
		set := func(f queue.Field) bool { return slices.Contains(c.Set.Fields(), f) }
		c.Unset = slices.DeleteFunc(c.Unset, set)
	}
	return m.changes(name, c)
}

// pauses pauses a queue, or ends its pause.
func (m *model) pauses() error {
	name, p := pick(m.rnd, "default", "b"), sometimes(m.rnd, 3, &queue.Pause{By: "b"})
	m.with = name
	_, err := both(m.Store.PauseQueue(m.Context(), m.now, name, p), m.right.PauseQueue(m.Context(), m.now, name, p))
	return err
}

func (m *model) changes(name string, c queue.Change) error {
	m.with = c
	done, err := both(m.Store.Configure(m.Context(), m.now, name, c), m.right.Configure(m.Context(), m.now, name, c))
	if !done {
		return err
	}
	got, gotErr := m.Store.Settings(m.Context())
	want, wantErr := m.right.Settings(m.Context())
	if done, err := both(gotErr, wantErr); !done {
		return err
	}
	for _, all := range []map[string]queue.Configured{got, want} { // which versions are given is open
		for name, is := range all {
			is.Version = 0
			all[name] = is
		}
	}
	return sameJSON("the settings", got, want)
}

func (m *model) maintains() error {
	const all = 10_000
	got, gotErr := m.Store.Maintain(m.Context(), m.now, all)
	want, wantErr := m.right.Maintain(m.Context(), m.now, all)
	if done, err := both(gotErr, wantErr); !done {
		return err
	}
	// A store may look earlier than it has to, also when nothing is to come: at a slot of the
	// total that it keeps for a queue, at the rate of a key, or at a finished task whose age
	// has passed, and that others keep.
	early := !got.IsZero() && !got.After(m.now)
	late := !want.IsZero() && (got.IsZero() || got.After(want))
	if early || late {
		return fmt.Errorf("there is more to do at %v, want %v; it is %v", got, want, m.now)
	}
	return nil
}

func (m *model) finds() error {
	f, p := m.filter(), queue.Page{
		Newest: m.rnd.IntN(2) == 0, Limit: m.rnd.IntN(8), Bytes: sometimes(m.rnd, 3, 1+m.rnd.IntN(6<<10)),
	}
	for _, id := range m.known(m.rnd.IntN(2)) {
		p.After = id
	}
	got, gotErr := m.Store.Find(m.Context(), f, p)
	all := p
	all.Bytes = 0 // by the sizes that the store gives: those of the texts of errors differ
	want, wantErr := m.right.Find(m.Context(), f, all)
	if done, err := both(gotErr, wantErr); !done {
		return err
	}
	if len(got) > 1 && reference.Full(got[:len(got)-1], p.Bytes) {
		return fmt.Errorf("%+v of %+v finds more than it may: %d tasks", p, f, len(got))
	}
	if reference.Full(got, p.Bytes) {
		want = want[:min(len(got), len(want))]
	}
	if g, w := idsOf(got), idsOf(want); !slices.Equal(g, w) {
		return fmt.Errorf("%+v of %+v finds\n%v, want\n%v", p, f, g, w)
	}
	stats, gotErr := m.Store.Stats(m.Context(), m.now)
	right, wantErr := m.right.Stats(m.Context(), m.now)
	if done, err := both(gotErr, wantErr); !done {
		return err
	}
	if g, w := counted(stats), counted(right); !maps.Equal(g, w) {
		return fmt.Errorf("counted %v with Stats, want %v", g, w)
	}
	for name, c := range right.Queues {
		if got := stats.Queues[name].Ended; got != c.Ended {
			return fmt.Errorf("of queue %s has ended %+v, want %+v", name, got, c.Ended)
		}
	}
	return nil
}

// explains compares what binds a task. For one that waits, only that there is
// something to say: the rest of its reasons are what a store makes of its order.
func (m *model) explains() error {
	for _, id := range m.known(3) {
		got, gotErr := m.Store.Explain(m.Context(), m.now, id)
		want, wantErr := m.right.Explain(m.Context(), m.now, id)
		done, err := both(gotErr, wantErr)
		switch {
		case err != nil:
			return fmt.Errorf("task %s: %w", id, err)
		case !done:
			continue
		case len(got) > 0 != (len(want) > 0):
			return fmt.Errorf("task %s: the reasons are %+v, want %+v", id, got, want)
		}
		// That there is no worker comes first only if a hold has just passed; whether one
		// that claims, and has sent no heartbeat, counts as a worker is open.
		open := len(want) == 0 || want[0].Code == queue.CodeNoWorker
		if state := m.task(id).State; state != queue.Waiting && !open && got[0].Code != want[0].Code {
			return fmt.Errorf("task %s is %s: the first reason is %+v, want %+v", id, state, got[0], want[0])
		}
	}
	return nil
}

// clears ends and forgets most tasks, so that there are never very many.
func (m *model) clears() error {
	for _, do := range []queue.Order{queue.OrderCancel, queue.OrderForget} {
		c := queue.Command{Do: do, Filter: queue.Filter{To: m.now.Add(-m.soon(20 * time.Second))}}
		got, gotErr := m.Store.Command(m.Context(), m.now, c)
		want, wantErr := m.right.Command(m.Context(), m.now, c)
		if done, err := both(gotErr, wantErr); !done {
			return err
		}
		if got != want {
			return fmt.Errorf("%s of old tasks changes %d, want %d", do, got, want)
		}
	}
	return nil
}

// reopens has the store end, in an orderly way or by a crash, and opens it again, if
// it is one that can be.
func (m *model) reopens() error {
	if !m.Durable {
		return nil
	}
	if orderly := m.rnd.IntN(2) == 0; orderly {
		m.with = "Close"
		if _, err := both(m.Store.Close(), m.right.Close()); err != nil {
			return err
		}
	}
	m.crash()
	m.right.reopen()
	if m.rnd.IntN(4) == 0 { // by a process whose clock is behind
		m.now = m.now.Add(-m.soon(pick(m.rnd, 10*time.Second, 10*time.Minute, 24*time.Hour)))
	}
	for _, t := range m.find(queue.Filter{States: []queue.State{queue.Running}}) {
		m.right.SetProgress(t.ID, t.Progress) // which need not survive
	}
	return nil
}
