package cluster_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/wiretest"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/cluster"
	"github.com/stintgo/stint/queue/storetest"
)

// followerOf returns a harness whose store is a node that follows another one.
func followerOf(k kind) storetest.Open {
	return func(t *testing.T, cfg storetest.Config) storetest.Harness {
		t.Helper()
		opener := k.opener(t, cfg)
		for _, name := range []string{"leader", "follower"} {
			n, err := cluster.OpenAround(t.Context(), opener, cluster.Config{Name: name, WatchBuffer: cfg.WatchBuffer},
				wiretest.ClientTime)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { closes(t, n) })
			if leader, own := n.Leader(); leader.Name != "leader" || own != (name == "leader") {
				t.Fatalf("%s: %q leads", name, leader.Name)
			}
			if name == "follower" {
				return storetest.Harness{Store: n, Remote: true}
			}
		}
		panic("not reached")
	}
}

// TestStore: a node that follows is a store. One that leads calls the store itself.
func TestStore(t *testing.T) {
	for _, k := range contractKinds() {
		t.Run(k.name, func(t *testing.T) { storetest.Run(t, followerOf(k)) })
	}
}

func TestModel_Store(t *testing.T) {
	for _, k := range contractKinds() {
		t.Run(k.name, func(t *testing.T) { storetest.Model(t, followerOf(k), 300) })
	}
}

// submit submits a task that is kept.
func submit(ctx context.Context, n *cluster.Node, ids *queue.IDs) (queue.ID, error) {
	now := time.Now()
	task := queue.NewTask{ID: ids.New(now), Spec: queue.Spec{Kind: "work"}}
	_, err := n.Submit(ctx, now, []queue.NewTask{task})
	return task.ID, err
}

// TestC11_LeaderThatEndsHandsOver: a call that is made when the leader closes waits for the
// next one, and finds what the leader before has answered.
func TestC11_LeaderThatEndsHandsOver(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			opener := k.opener(t, storetest.Config{})
			var ids queue.IDs
			first := open(t, opener, cluster.Config{Name: "first"})
			second := open(t, opener, cluster.Config{Name: "second"})
			third := open(t, opener, cluster.Config{Name: "third"})
			var kept []queue.ID
			for _, n := range []*cluster.Node{first, second, third} {
				id, err := submit(t.Context(), n, &ids)
				if err != nil {
					t.Fatal(err)
				}
				kept = append(kept, id)
			}
			closes(t, first)
			began := time.Now()
			for _, n := range []*cluster.Node{third, second} {
				found, err := n.Find(t.Context(), queue.Filter{IDs: kept}, queue.Page{})
				if err != nil || len(found) != len(kept) {
					t.Fatalf("found %d tasks, %v", len(found), err)
				}
			}
			t.Logf("the next leader answers %s after the end of the first", time.Since(began))
			leader, _ := second.Leader()
			if other, _ := third.Leader(); other.Name != leader.Name || leader.Name == "first" || leader.Name == "" {
				t.Errorf("the others have the leaders %q and %q", leader.Name, other.Name)
			}
			if _, err := first.Find(t.Context(), queue.Filter{}, queue.Page{}); !errors.Is(err, queue.ErrClosed) {
				t.Errorf("the first node answers %v after its end", err)
			}
		})
	}
}
