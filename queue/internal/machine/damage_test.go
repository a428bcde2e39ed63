package machine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/internal/machine"
)

// damagedRows are rows of which some cannot be read, as on a damaged disk.
type damagedRows struct {
	*rows
	bad   map[string]bool
	away  bool // no row can be read
	reads int
}

var errUnreadable = errors.New("bad block")

func (r *damagedRows) Get(key string) ([]byte, error) {
	r.reads++
	if r.away {
		return nil, fmt.Errorf("%w: no answer", journal.ErrAway)
	}
	if r.bad[key] {
		return nil, errUnreadable
	}
	return r.rows.Get(key)
}

// damaged is a machine on damagedRows.
type damaged struct {
	*machine.Machine
	t        *testing.T
	rows     *damagedRows
	reported []queue.ID
	ids      queue.IDs
}

func newDamaged(t *testing.T) *damaged {
	t.Helper()
	d := &damaged{t: t, rows: &damagedRows{rows: newRows(), bad: map[string]bool{}}}
	d.reopen()
	return d
}

func (d *damaged) reopen() {
	d.t.Helper()
	d.rows.rows = d.rows.crash()
	m, err := machine.Open(d.rows, machine.Config{
		Damaged: func(id queue.ID, _ error) { d.reported = append(d.reported, id) },
	})
	if err != nil {
		d.t.Fatal(err)
	}
	d.Machine = m
}

func (d *damaged) add(specs ...queue.Spec) (ids []queue.ID) {
	d.t.Helper()
	for _, s := range specs {
		task := newTask(&d.ids, s)
		submit(d.t, d.Machine, task)
		ids = append(ids, task.ID)
	}
	return ids
}

func (d *damaged) damage(id queue.ID) { d.rows.bad["t"+string(id[:])] = true }

func (d *damaged) repair(id queue.ID) { delete(d.rows.bad, "t"+string(id[:])) }

func (d *damaged) maintain(after time.Duration) {
	d.t.Helper()
	if _, err := d.Maintain(d.t.Context(), start.Add(after), 0); err != nil {
		d.t.Errorf("tending after %s says %v", after, err)
	}
}

// starts checks which tasks a claim starts.
func (d *damaged) starts(want ...queue.ID) {
	d.t.Helper()
	var got []queue.ID
	for _, task := range claim(d.t, d.Machine, 10) {
		got = append(got, task.ID)
	}
	if !slices.Equal(got, want) {
		d.t.Errorf("a claim starts %v, want %v", got, want)
	}
}

// is checks the state of a task, and the reason that holds it.
func (d *damaged) is(id queue.ID, state queue.State, code queue.HoldCode) {
	d.t.Helper()
	found, err := d.Find(d.t.Context(), queue.Filter{States: []queue.State{state}}, queue.Page{})
	i := slices.IndexFunc(found, func(t queue.Task) bool { return t.ID == id })
	if err != nil || i < 0 {
		d.t.Errorf("task %s is not %s: %v, error %v", id, state, found, err)
		return
	}
	if got := found[i]; code != "" && (len(got.Holds) == 0 || got.Holds[0].Code != code) {
		d.t.Errorf("task %s is held by %v, want %s", id, got.Holds, code)
	}
	if code != queue.HoldDamaged {
		return
	}
	if !strings.Contains(found[i].Error, errUnreadable.Error()) || found[i].Queue != "default" {
		d.t.Errorf("task %s is %+v", id, found[i])
	}
	why, err := d.Explain(d.t.Context(), start, id)
	if err != nil || len(why) != 1 || string(why[0].Code) != string(code) || !strings.Contains(why[0].What, "bad block") {
		d.t.Errorf("why it waits: %+v, error %v", why, err)
	}
}

func (d *damaged) damagedOnes(want int) {
	d.t.Helper()
	s, err := d.Stats(d.t.Context(), start)
	if got := s.Queues["default"].Damaged; err != nil || got != want || len(d.reported) < want {
		d.t.Errorf("%d tasks are said to be damaged, want %d; reported are %v; error %v", got, want, d.reported, err)
	}
}

// A task that cannot be read delays no other task, is shown in quarantine, and continues
// when it can be read.
func TestC6_DamagedTaskDelaysNoOther(t *testing.T) {
	d := newDamaged(t)
	ids := d.add(queue.Spec{}, queue.Spec{}, queue.Spec{})
	d.damage(ids[0])
	d.starts(ids[1], ids[2])
	d.is(ids[0], queue.Held, queue.HoldDamaged)
	d.damagedOnes(1)
	d.maintain(time.Minute)
	d.is(ids[0], queue.Held, queue.HoldDamaged)
	d.repair(ids[0])
	d.maintain(2 * time.Minute)
	d.damagedOnes(0)
	got := claimAt(t, d.Machine, start.Add(2*time.Minute), 5)
	if len(got) == 0 || got[0].ID != ids[0] || len(got[0].Steps) != 2 {
		t.Errorf("what starts is %v", got)
	}
}

// While no row can be read, because a database does not answer, tasks are not reported as
// damaged: a claim and a query fail, and a second after the rows are back the tasks start.
// Nothing is forgotten meanwhile whose unique name could not be kept.
func TestC6_RowsThatAreAway(t *testing.T) {
	d := newDamaged(t)
	keep := queue.Settings{Keep: queue.Retention{Age: time.Minute, Count: 10}}
	if err := d.Configure(t.Context(), start, "default", queue.Change{Set: keep}); err != nil {
		t.Fatal(err)
	}
	done := d.add(queue.Spec{Options: queue.Options{Unique: "u", UniqueFor: time.Hour}})
	started := claim(t, d.Machine, 1)[0]
	outcome := queue.Outcome{ID: started.ID, Token: started.Lease.Token, Kind: queue.OutcomeSuccess}
	if errs, err := d.Settle(t.Context(), start, []queue.Outcome{outcome}); err != nil || errs[0] != nil {
		t.Fatal(errs, err)
	}
	ids := d.add(queue.Spec{}, queue.Spec{})
	d.reopen() // no row is in memory
	d.rows.away = true
	c := queue.Claim{Worker: "w", Kinds: []string{"kind"}, Max: 5, Lease: time.Minute}
	if got, err := d.Claim(t.Context(), start, c); !errors.Is(err, queue.ErrUnavailable) {
		t.Errorf("a claim: %v, %v", got, err)
	}
	for _, f := range []queue.Filter{{IDs: ids}, {Kind: "kind"}} {
		if found, err := d.Find(t.Context(), f, queue.Page{}); !errors.Is(err, queue.ErrUnavailable) {
			t.Errorf("%+v finds %v, %v", f, found, err)
		}
	}
	d.maintain(2 * time.Minute)
	d.rows.away = false
	if found, err := d.Find(t.Context(), queue.Filter{IDs: done}, queue.Page{}); err != nil || len(found) != 1 {
		t.Errorf("the finished task: %v, %v", found, err)
	}
	d.maintain(3 * time.Minute)
	again := newTask(&d.ids, queue.Spec{Options: queue.Options{Unique: "u"}})
	receipts, err := d.Submit(t.Context(), start.Add(3*time.Minute), []queue.NewTask{again})
	if err != nil || !receipts[0].Existing || receipts[0].ID != done[0] {
		t.Errorf("the unique name is not kept: %+v, %v", receipts, err)
	}
	if got := claimAt(t, d.Machine, start.Add(3*time.Minute), 5); len(got) != 2 || len(d.reported) > 0 {
		t.Errorf("started are %v; reported as damaged %v", got, d.reported)
	}
}

// If no row can be read, a claim returns an error before it has tried all tasks.
func TestC6_DamagedDisk(t *testing.T) {
	d := newDamaged(t)
	for _, id := range d.add(make([]queue.Spec, 100)...) {
		d.damage(id)
	}
	d.rows.reads = 0
	_, err := d.Claim(t.Context(), start, queue.Claim{Worker: "w", Kinds: []string{"kind"}, Max: 1, Lease: 1})
	if !errors.Is(err, queue.ErrUnavailable) || !errors.Is(err, errUnreadable) || d.rows.reads > 20 {
		t.Errorf("after %d reads the claim says %v", d.rows.reads, err)
	}
}

// A claim that returns tasks signals that it has not tried all, and the next claim
// continues behind the unreadable tasks.
func TestC6_DamagedDiskInPart(t *testing.T) {
	d := newDamaged(t)
	ids := d.add(make([]queue.Spec, 20)...)
	for _, id := range ids[1:19] {
		d.damage(id)
	}
	ready, stop := d.Listen("")
	defer stop()
	d.starts(ids[0])
	select {
	case <-ready:
	default:
		t.Error("the claim does not say that there may be more")
	}
	d.starts(ids[19])
	if len(ready) != 0 {
		t.Error("there is a signal, and nothing to claim")
	}
}

// Due changes, deadlines and holds of all other tasks continue, and so does the store.
func TestC6_DamagedTaskThatIsDue(t *testing.T) {
	for name, spec := range map[string]queue.Spec{
		"due":      {Options: queue.Options{RunAt: start.Add(time.Second)}},
		"deadline": {Options: queue.Options{Deadline: start.Add(time.Second)}},
	} {
		d := newDamaged(t)
		ids := d.add(spec, spec, queue.Spec{})
		d.damage(ids[0])
		d.maintain(time.Second)
		d.is(ids[0], queue.Held, queue.HoldDamaged)
		if len(d.add(queue.Spec{})) != 1 {
			t.Errorf("%s: nothing is accepted any more", name)
		}
		d.repair(ids[0])
		d.maintain(2 * time.Minute)
		want := d.find(ids[1]).State
		if got := d.find(ids[0]).State; got != want {
			t.Errorf("%s: it is %s when it can be read, and the other one %s", name, got, want)
		}
	}
}

func (d *damaged) find(id queue.ID) queue.Task {
	d.t.Helper()
	found, err := d.Find(d.t.Context(), queue.Filter{IDs: []queue.ID{id}}, queue.Page{})
	if err != nil || len(found) != 1 {
		d.t.Fatalf("%d tasks have the ID %s, error %v", len(found), id, err)
	}
	return found[0]
}

// Commands and searches do what is possible, and the error of a command says what was
// not.
func TestC6_DamagedTaskAmongOthers(t *testing.T) {
	for name, f := range map[string]queue.Filter{"all": {}, "by kind": {Kind: "kind"}, "by ID": {}} {
		d := newDamaged(t)
		ids := d.add(make([]queue.Spec, 5)...)
		if name == "by ID" {
			f.IDs = ids
		}
		d.damage(ids[1])
		found, err := d.Find(t.Context(), f, queue.Page{})
		want := 5
		if f.Kind != "" {
			want-- // its kind is unknown
		}
		if err != nil || len(found) != want {
			t.Errorf("%s: %d found, error %v; want %d", name, len(found), err, want)
		}
		c := queue.Command{Do: queue.OrderPause, Filter: f, All: true}
		n, err := d.Command(t.Context(), start, c)
		if n != 4 || !errors.Is(err, queue.ErrUnavailable) || !strings.Contains(fmt.Sprint(err), ids[1].String()) {
			t.Errorf("%s: %d changed, error %v; want 4, and an error that names %s", name, n, err, ids[1])
		}
		d.is(ids[4], queue.Paused, "")
		d.repair(ids[1])
		if n, err = d.Command(t.Context(), start, c); n != 1 || err != nil {
			t.Errorf("%s: when it can be read %d change, error %v", name, n, err)
		}
	}
}

// A group waits for a task that cannot be read, as for any other task.
func TestC12_DamagedTaskKeepsItsGroupsOrder(t *testing.T) {
	d := newDamaged(t)
	grouped := queue.Spec{Options: queue.Options{Group: "g"}}
	ids := d.add(grouped, grouped, queue.Spec{})
	d.damage(ids[0])
	d.starts(ids[2])
	d.is(ids[1], queue.Held, queue.HoldGroup)
	d.repair(ids[0])
	d.maintain(time.Minute)
	d.starts(ids[0], ids[2]) // the lease of ids[0] has ended as well
}

// A finished task is forgotten by its retention or by a command, whether or not it can be
// read, and its Unique is free again.
func TestC3_DamagedTaskIsForgotten(t *testing.T) {
	for _, byCommand := range []bool{false, true} {
		d := newDamaged(t)
		ids := d.add(queue.Spec{Options: queue.Options{Unique: "u", MaxCrashes: 1}})
		claim(t, d.Machine, 1)
		d.maintain(time.Hour) // lost too often, so it is dead as poison
		d.damage(ids[0])
		if byCommand {
			if n, err := d.Command(t.Context(), start, queue.Command{Do: queue.OrderForget, All: true}); n != 1 || err != nil {
				t.Errorf("%d are forgotten, error %v", n, err)
			}
		} else {
			d.maintain(10_000 * time.Hour)
		}
		for range 2 {
			other := d.add(queue.Spec{Options: queue.Options{Unique: "u"}})
			if got := d.find(other[0]); got.State != queue.Waiting {
				t.Errorf("the same work is %s afterwards", got.State)
			}
			if _, err := d.Command(t.Context(), start, queue.Command{Do: queue.OrderCancel, All: true}); err != nil {
				t.Error(err)
			}
			if _, err := d.Command(t.Context(), start, queue.Command{Do: queue.OrderForget, All: true}); err != nil {
				t.Error(err)
			}
			d.reopen()
		}
	}
}

// An unreadable task whose predecessor is forgotten is cancelled when it can be read, and
// does not start before, also if the store is opened again.
func TestC12_DamagedTaskAfterOneThatIsForgotten(t *testing.T) {
	for _, reopened := range []bool{false, true} {
		d := newDamaged(t)
		first := d.add(queue.Spec{})
		second := d.add(queue.Spec{Options: queue.Options{After: first}}, queue.Spec{Options: queue.Options{After: first}})
		die(t, d.Machine, start)
		d.damage(second[0])
		if n, err := d.Command(t.Context(), start, queue.Command{Do: queue.OrderForget, All: true}); n != 1 || err != nil {
			t.Fatalf("%d are forgotten, error %v", n, err)
		}
		if got := d.find(second[1]).State; got != queue.Cancelled {
			t.Errorf("the one that can be read is %s", got)
		}
		d.repair(second[0])
		if reopened {
			d.reopen()
		}
		d.starts()
		d.maintain(time.Minute)
		if got := d.find(second[0]).State; got != queue.Cancelled {
			t.Errorf("the other one is %s (opened again: %t)", got, reopened)
		}
	}
}

// While rows become unreadable and readable again, a machine does what a machine with
// sound rows does, as soon as all can be read.
func TestModel_Damage(t *testing.T) {
	rng := seeded.Rand(t)
	for range 200 {
		d := newDamaged(t)
		var ids []queue.ID
		now := start
		for range 40 {
			now = now.Add(time.Duration(rng.IntN(40)) * time.Second)
			switch rng.IntN(7) {
			case 0:
				s := queue.Spec{Options: queue.Options{Key: fmt.Sprint(rng.IntN(2))}}
				s.RunAt = now.Add(time.Duration(rng.IntN(60)) * time.Second)
				if rng.IntN(2) == 0 {
					s.Group = "g"
				}
				if len(ids) > 0 && rng.IntN(3) == 0 {
					s.After = ids[len(ids)-1:]
				}
				ids = append(ids, d.add(s)...)
			case 1:
				if len(ids) > 0 {
					d.damage(ids[rng.IntN(len(ids))])
				}
			case 2:
				if len(ids) > 0 {
					d.repair(ids[rng.IntN(len(ids))])
				}
			case 3:
				d.maintain(now.Sub(start))
			case 4:
				if len(ids) > 0 {
					some := queue.Filter{IDs: []queue.ID{ids[rng.IntN(len(ids))]}}
					do := []queue.Order{queue.OrderPause, queue.OrderResume, queue.OrderRetry}[rng.IntN(3)]
					_, _ = d.Command(t.Context(), now, queue.Command{Do: do, Filter: some}) // the row may be unreadable
				}
			default:
				d.work(now)
			}
		}
		clear(d.rows.bad)
		if _, err := d.Command(t.Context(), now, queue.Command{Do: queue.OrderResume, All: true}); err != nil {
			t.Error(err)
		}
		for range 2 * len(ids) {
			now = now.Add(2 * time.Minute)
			d.maintain(now.Sub(start))
			d.work(now)
		}
		d.allSucceeded(ids)
	}
}

// work runs all tasks that can be claimed, with success.
func (d *damaged) work(now time.Time) {
	d.t.Helper()
	c := queue.Claim{Worker: "w", Kinds: []string{"kind"}, Max: 3, Lease: time.Hour}
	got, err := d.Claim(context.Background(), now, c)
	if err != nil && !errors.Is(err, errUnreadable) {
		d.t.Fatal(err)
	}
	for _, task := range got.Tasks {
		o := []queue.Outcome{{ID: task.ID, Token: task.Lease.Token, Kind: queue.OutcomeSuccess}}
		if _, err := d.Settle(context.Background(), now, o); err != nil {
			d.t.Fatal(err)
		}
	}
}

func (d *damaged) allSucceeded(ids []queue.ID) {
	d.t.Helper()
	if len(ids) == 0 {
		return
	}
	s, err := d.Stats(context.Background(), start)
	got, want := s.Queues["default"], map[queue.State]int{queue.Succeeded: len(ids)}
	if err != nil || got.Damaged != 0 || !maps.Equal(got.States, want) || len(got.Tiers) > 0 {
		d.t.Errorf("of %d tasks: %+v, error %v", len(ids), got, err)
	}
}
