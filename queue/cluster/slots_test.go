package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/slotstest"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/cluster"
	"github.com/stintgo/stint/queue/storetest"
)

// nodes opens a leader and followers, whose permits have a lease.
func nodes(t *testing.T, k kind, n int, lease time.Duration) (all []*cluster.Node) {
	t.Helper()
	opener := k.opener(t, storetest.Config{})
	for i := range n {
		node, err := cluster.OpenWith(t.Context(), opener, cluster.Config{Name: fmt.Sprint("node", i)}, lease)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closes(t, node) })
		all = append(all, node)
	}
	return all
}

func slots(t *testing.T, n *cluster.Node, most int) *cluster.Slots {
	t.Helper()
	s, err := n.Slots("limit", cluster.SlotsConfig{Max: most})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestC11_SlotsContract: one leader and two followers keep the contract of slots.
func TestC11_SlotsContract(t *testing.T) {
	for _, k := range contractKinds() {
		t.Run(k.name, func(t *testing.T) {
			slotstest.Run(t, func(t *testing.T, limit, n int) (all []stint.Slots) {
				t.Helper()
				hosts := nodes(t, k, 3, 500*time.Millisecond)
				for i := range n {
					all = append(all, slots(t, hosts[(i+1)%3], limit))
				}
				return all
			})
		})
	}
}

// TestC11_WhyNamesHosts: an entry that waits for a slot of other hosts names them.
func TestC11_WhyNamesHosts(t *testing.T) {
	hosts := nodes(t, kinds[1], 3, time.Second)
	schedulers := make([]stint.Scheduler, len(hosts))
	for i, n := range hosts {
		schedulers[i] = stint.New(2, stint.Config{Slots: slots(t, n, 2)})
	}
	for _, s := range schedulers[:2] {
		p, err := s.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer p.Release()
	}
	waits := stint.Go(t.Context(), schedulers[2], func(context.Context) (int, error) { return 1, nil })
	defer waits.Cancel(nil)
	again, late := time.NewTicker(time.Millisecond), time.After(10*time.Second)
	defer again.Stop()
	for {
		w, _ := waits.Why()
		if len(w.Reasons) > 0 {
			r := w.Reasons[0]
			named := r.By == "node0, node1" || r.By == "node1, node0" // in the order in which they got their slots
			if r.Code == stint.CodeShared && r.Limit == 2 && r.Running == 2 && named {
				return
			}
		}
		select {
		case <-again.C:
		case <-late:
			t.Fatalf("it waits for %+v", w.Reasons)
		}
	}
}

// TestC11_SlotsOfAClosedNode: work on slots of a node that closes is cancelled, and what
// waits ends. What was not in use is there for other nodes at once, although the leader has
// changed.
func TestC11_SlotsOfAClosedNode(t *testing.T) {
	hosts := nodes(t, kinds[1], 2, time.Second)
	s := stint.New(1, stint.Config{Slots: slots(t, hosts[0], 1)})
	began := make(chan struct{})
	runs := stint.Go(t.Context(), s, func(ctx context.Context) (int, error) {
		close(began)
		<-ctx.Done()
		return 0, context.Cause(ctx)
	})
	<-began
	waits := stint.Go(t.Context(), s, func(context.Context) (int, error) { return 1, nil })
	closes(t, hosts[0])
	if _, err := runs.Wait(t.Context()); !errors.Is(err, stint.ErrSlotLost) || !errors.Is(err, queue.ErrClosed) {
		t.Errorf("the work that ran: %v", err)
	}
	if _, err := waits.Wait(t.Context()); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("the work that waited: %v", err)
	}
	other := stint.New(1, stint.Config{Slots: slots(t, hosts[1], 1)})
	p, err := other.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.Release()
}

func TestC11_ClosedNodeCancelsWorkWhateverWakesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost, err := cluster.LostAtClose()
		if err != nil || len(lost) != 1 {
			t.Errorf("lost grants: %v, %v, want one", lost, err)
		}
	})
}

// TestC11_FirstLeaderNeedNotWait: if no node has led for long, the first permit is granted at
// once. A leader that follows another one grants none that may be in use.
func TestC11_FirstLeaderNeedNotWait(t *testing.T) {
	k := kinds[0]
	opener := k.opener(t, storetest.Config{})
	reopen := func() (*cluster.Node, *cluster.Slots) {
		n, err := cluster.OpenWith(t.Context(), opener, cluster.Config{Name: "alone"}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closes(t, n) })
		return n, slots(t, n, 1)
	}
	n, first := reopen()
	p, err := stint.New(1, stint.Config{Slots: first}).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.Release()
	closes(t, n)
	_, second := reopen()
	s := stint.New(1, stint.Config{Slots: second})
	waits := stint.Go(t.Context(), s, func(context.Context) (int, error) { return 1, nil })
	defer waits.Cancel(nil)
	again, late := time.NewTicker(time.Millisecond), time.After(10*time.Second)
	defer again.Stop()
	for u := second.Usage(); u.Err != "" || u.Waiting != 1; u = second.Usage() {
		select {
		case <-again.C:
		case <-late:
			t.Fatalf("the leader does not know that something waits: %+v", u)
		}
	}
	if u := second.Usage(); u.Running != 0 {
		t.Errorf("a permit that may be in use was granted: %+v", u)
	}
}
