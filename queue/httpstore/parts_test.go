package httpstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/httpstore"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/server"
)

// Outcomes and heartbeats that are too many for a call are sent in parts, and answered in
// order. A submit of too many tasks is refused, because it is made completely or not at all.
func TestC6_CallsInParts(t *testing.T) {
	client := open(t, serve(t, memstore.New(memstore.Config{}), server.Config{}), httpstore.Config{})
	const last = 2 * wire.ItemsMost
	now := time.Now()
	id := new(queue.IDs).New(now)
	if _, err := client.Submit(t.Context(), now, []queue.NewTask{{ID: id, Spec: queue.Spec{Kind: "k"}}}); err != nil {
		t.Fatal(err)
	}
	got, err := client.Claim(t.Context(), now, queue.Claim{Worker: "w", Kinds: []string{"k"}, Max: 1, Lease: time.Hour})
	if err != nil || len(got.Tasks) != 1 {
		t.Fatalf("%d tasks claimed, %v", len(got.Tasks), err)
	}
	token := got.Tasks[0].Lease.Token

	heartbeats := make([]queue.Heartbeat, last+1)
	heartbeats[last] = queue.Heartbeat{ID: id, Token: token, Lease: time.Hour}
	worker := queue.Worker{Name: "w", Kinds: map[string][]string{"default": {"k"}}}
	answers, err := client.Heartbeat(t.Context(), now, worker, heartbeats)
	if err != nil || len(answers) != last+1 || answers[last].Stop != 0 || answers[0].Stop != queue.StopLost {
		t.Errorf("%d signs of life have %d answers, %v", last+1, len(answers), err)
	}
	if answers, err := client.Heartbeat(t.Context(), now, worker, nil); err != nil || len(answers) != 0 {
		t.Errorf("no signs of life have the answers %v, %v", answers, err)
	}

	outcomes := make([]queue.Outcome, last+1)
	for i := range outcomes {
		outcomes[i].Kind = queue.OutcomeSuccess
	}
	outcomes[last].ID, outcomes[last].Token = id, token
	errs, err := client.Settle(t.Context(), now, outcomes)
	if err != nil || len(errs) != last+1 || errs[last] != nil || !errors.Is(errs[0], queue.ErrStale) {
		t.Errorf("%d outcomes have %d answers, %v", last+1, len(errs), err)
	}
	_, err = client.Submit(t.Context(), now, make([]queue.NewTask, wire.ItemsMost+1))
	if !errors.Is(err, queue.ErrTooLarge) {
		t.Errorf("a submit of too many tasks is %v", err)
	}
}

// TestC4_PagesOfLargeTasks: a page of large tasks is asked for in parts, because each
// answer has room for a few of them, and is as long as it is of any store.
func TestC4_PagesOfLargeTasks(t *testing.T) {
	store := memstore.New(memstore.Config{})
	client := open(t, serve(t, store, server.Config{}), httpstore.Config{})
	const n = 20
	var ids queue.IDs
	for range n {
		task := queue.NewTask{ID: ids.New(time.Now()), Spec: queue.Spec{Kind: "k", Payload: make([]byte, 1<<20)}}
		if _, err := store.Submit(t.Context(), time.Now(), []queue.NewTask{task}); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []struct {
		queue.Page
		want int // tasks
	}{
		{queue.Page{}, n},
		{queue.Page{Newest: true, Limit: 18}, 18},
		{queue.Page{Limit: n, Bytes: 3 << 20}, 3},
		{queue.Page{Limit: n, Bytes: 17 << 20}, 17},
	} {
		found, err := client.Find(t.Context(), queue.Filter{}, p.Page)
		if err != nil || len(found) != p.want {
			t.Errorf("the page %+v has %d tasks, want %d; %v", p.Page, len(found), p.want, err)
		}
		seen := make(map[queue.ID]bool)
		for i := range found {
			seen[found[i].ID] = true
		}
		if len(seen) != len(found) {
			t.Errorf("of %d tasks of the page %+v, %d are distinct", len(found), p.Page, len(seen))
		}
	}
}
