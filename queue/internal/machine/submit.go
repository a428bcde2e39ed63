package machine

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// fingerprint is what a task does: its kind and its payload.
type fingerprint [16]byte

func fingerprintOf(s *queue.Spec) (f fingerprint) {
	h := sha256.New()
	h.Write([]byte(s.Kind))
	h.Write([]byte{0})
	h.Write(s.Payload)
	copy(f[:], h.Sum(nil))
	return f
}

// Submit is as [queue.Store] says.
func (m *Machine) Submit(_ context.Context, now time.Time, tasks []queue.NewTask) ([]queue.Receipt, error) {
	tasks = slices.Clone(tasks) // they are completed here
	for i := range tasks {
		if err := m.validate(&tasks[i]); err != nil {
			return nil, fmt.Errorf("task %d: %w", i, err)
		}
	}
	if m.cfg.Room != nil { // what ends tasks, and makes room, is not asked
		if err := m.cfg.Room(); err != nil {
			return nil, fmt.Errorf("%w: %w", queue.ErrUnavailable, err)
		}
	}
	if err := m.begin(now); err != nil {
		return nil, err
	}
	receipts, fresh, err := m.receive(tasks)
	if err == nil {
		for i := range tasks {
			if fresh[i] {
				m.accept(&tasks[i])
			}
		}
	}
	if syncErr := m.end(); err == nil {
		err = syncErr
	}
	if err != nil {
		return nil, err
	}
	return receipts, nil
}

// receive answers tasks without accepting them, and says which are fresh and to
// be accepted. The error is that of one that cannot be.
func (m *Machine) receive(tasks []queue.NewTask) (receipts []queue.Receipt, fresh []bool, err error) {
	receipts, fresh = make([]queue.Receipt, len(tasks)), make([]bool, len(tasks))
	call := arrivals{unique: map[uniqueKey]queue.ID{}, ids: map[queue.ID]queue.ID{}, more: map[string]int{}}
	for i := range tasks {
		t := &tasks[i]
		existing, err := m.existing(t, call)
		if err != nil {
			return nil, nil, fmt.Errorf("task %d: %w", i, err)
		}
		receipts[i] = queue.Receipt{ID: t.ID, Existing: !existing.IsZero() && existing != t.ID}
		if !existing.IsZero() {
			receipts[i].ID = existing
			call.ids[t.ID] = existing
			continue
		}
		if err := m.resolve(t, call); err != nil {
			return nil, nil, fmt.Errorf("task %d: %w", i, err)
		}
		call.ids[t.ID], fresh[i] = t.ID, true
		if t.Unique != "" {
			call.unique[uniqueKey{t.Queue, t.Unique}] = t.ID
		}
		call.more[t.Queue]++
		l := m.line(t.Queue)
		if limit := l.settings.Pending; limit > 0 && l.unfinished()+call.more[t.Queue] > limit {
			return nil, nil, fmt.Errorf("task %d: %w: %s has %d unfinished tasks, its limit is %d",
				i, queue.ErrFull, t.Queue, l.unfinished(), limit)
		}
	}
	return receipts, fresh, nil
}

// arrivals are the tasks of a call that come before one.
type arrivals struct {
	unique map[uniqueKey]queue.ID
	ids    map[queue.ID]queue.ID // as which tasks are known
	more   map[string]int        // by queue
}

// existing returns the task that a new one is the same as: by its ID, if the
// call is repeated, or by its Unique.
func (m *Machine) existing(t *queue.NewTask, call arrivals) (queue.ID, error) {
	if as, twice := call.ids[t.ID]; twice {
		return as, nil
	}
	known, err := m.known(t.ID)
	if err != nil || known != 0 {
		return t.ID, err
	}
	if t.Unique == "" {
		return queue.ID{}, nil
	}
	key := uniqueKey{t.Queue, t.Unique}
	if id, ok := m.unique[key]; ok {
		return id, nil
	}
	if id, ok := call.unique[key]; ok {
		return id, nil
	}
	return m.named(rowUnique + key.queue + "\x00" + key.unique)
}

// named reads a row that holds an ID; zero if there is none.
func (m *Machine) named(key string) (id queue.ID, err error) {
	value, err := m.journal.get(key)
	if err != nil {
		return id, fmt.Errorf("%w: %w", queue.ErrUnavailable, err)
	}
	copy(id[:], value)
	return id, nil
}

// known returns the state of a task, 0 if there is none.
func (m *Machine) known(id queue.ID) (queue.State, error) {
	if t := m.tasks[id]; t != nil {
		return t.state, nil
	}
	value, err := m.journal.get(rowFinished + string(id[:]))
	if err != nil {
		return 0, fmt.Errorf("%w: %w", queue.ErrUnavailable, err)
	}
	if value == nil {
		return 0, nil
	}
	head, err := record.Peek(value)
	if err != nil {
		return 0, fmt.Errorf("%w: read task %s: %w", queue.ErrUnavailable, id, err)
	}
	return head.State, nil
}

// resolve checks that the tasks that a new one comes after are there, and puts
// those in that were there already in place of others of the call.
func (m *Machine) resolve(t *queue.NewTask, call arrivals) error {
	t.After = slices.Clone(t.After)
	for i, id := range t.After {
		if as, ok := call.ids[id]; ok {
			t.After[i] = as
			continue
		}
		state, err := m.known(id)
		if err != nil {
			return err
		}
		if state == 0 {
			return fmt.Errorf("%w: it comes after task %s, which there is not", queue.ErrInvalid, id)
		}
	}
	return nil
}

// accept makes a task of what was submitted.
func (m *Machine) accept(n *queue.NewTask) {
	m.seq++
	row := record.Row{Task: queue.Task{ID: n.ID, Spec: n.Spec, Submitted: m.time()}, Seq: m.seq}
	if n.Unique != "" {
		m.journal.set(rowUnique+n.Queue+"\x00"+n.Unique, row.ID[:])
	}
	w := why{on: queue.OnSubmit}
	if len(m.poison) > 0 {
		if same := m.poison[fingerprintOf(&n.Spec)]; len(same) > 0 {
			w.detail = fmt.Sprintf("the same work as task %s, which has crashed its workers", same[0])
			row.Error = w.detail
			m.step(&row, queue.Dead, w)
			m.retain(m.line(row.Queue), &row)
			return
		}
	}
	t := m.admit(&row)
	m.await(t, &row)
	to := m.pending(t, t.due.at)
	m.step(&row, to, w)
	m.enter(t, to)
	m.write(t, &row)
}

// admit puts the task of a row into the memory, in no state yet.
func (m *Machine) admit(row *record.Row) *task {
	l := m.line(row.Queue)
	t := &task{
		id: row.ID, line: l, key: row.Key, seq: row.Seq, kind: l.class(row.Kind), tier: int(row.Tier - stint.Lowest),
	}
	t.place.Value = t
	t.due.t, t.expiry.t = t, t
	if !row.RunAt.IsZero() {
		t.due.at = unix(row.RunAt)
	}
	m.tasks[t.id] = t
	if !row.Deadline.IsZero() {
		m.due.set(&t.expiry, unix(row.Deadline))
	}
	if row.Unique != "" {
		t.more().uniqueName = row.Unique
		m.unique[uniqueKey{row.Queue, row.Unique}] = t.id
	}
	if row.Group != "" {
		m.joinGroup(t, row.Group)
	}
	if !row.Batch.IsZero() {
		m.joinBatch(t, row.Batch)
	}
	return t
}

// await has a task wait for those that it comes after.
func (m *Machine) await(t *task, row *record.Row) {
	for _, id := range row.After {
		state, err := m.known(id)
		if err != nil {
			m.journal.fail(err)
			return
		}
		// One that is forgotten had succeeded: the others take those that wait
		// for them along.
		if state == queue.Succeeded || state == 0 {
			continue
		}
		if t.more().waitsFor == nil {
			t.waitsFor = make(map[queue.ID]queue.State)
		}
		if _, twice := t.waitsFor[id]; !twice {
			m.dependents[id] = append(m.dependents[id], t)
		}
		t.waitsFor[id] = state
	}
	if !row.AfterBatch.IsZero() {
		b := m.batchOf(row.AfterBatch)
		t.more().waitsBatch = b
		b.waiting = append(b.waiting, t)
	}
}
