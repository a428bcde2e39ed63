package cluster_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/cluster"
	"github.com/stintgo/stint/queue/memstore"
)

// leased is a store whose lease may have ended.
type leased struct {
	queue.Store
	ended   bool
	trouble error
}

func (l *leased) Lost() <-chan struct{} { return nil }
func (l *leased) Leads() bool           { return !l.ended }
func (l *leased) Now() time.Time        { return time.Now() }
func (l *leased) Trouble() error        { return l.trouble }

// TestC11_NothingOutOfDate: when the lease of a node has ended, it answers only what it has
// changed. Another node may have changed all else, also what a refusal is based on.
func TestC11_NothingOutOfDate(t *testing.T) {
	under := &leased{Store: memstore.New(memstore.Config{})}
	s := cluster.Checked(under)
	var ids queue.IDs
	now := time.Now()
	task := func() queue.NewTask { return queue.NewTask{ID: ids.New(now), Spec: queue.Spec{Kind: "work"}} }
	submit := func(ctx context.Context, tasks ...queue.NewTask) error {
		_, err := s.Submit(ctx, now, tasks)
		return err
	}
	kept, more, stale := task(), task(), ids.New(now)
	after := task()
	after.After = []queue.ID{stale}
	claim := queue.Claim{Worker: "w", Kinds: []string{"work"}, Max: 1, Lease: time.Minute}
	if err := submit(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	under.ended = true
	var token queue.Token
	for _, call := range []struct {
		name     string
		answered bool
		do       func(ctx context.Context) error
	}{
		{"Submit", true, func(ctx context.Context) error { return submit(ctx, more) }},
		{"Submit of the same", true, func(ctx context.Context) error { return submit(ctx, more) }},
		{"Submit, refused", false, func(ctx context.Context) error { return submit(ctx, after) }},
		{"Claim", true, func(ctx context.Context) error {
			claimed, err := s.Claim(ctx, now, claim)
			if err == nil {
				token = claimed.Tasks[0].Lease.Token
			}
			return err
		}},
		{"Claim of nothing", false, func(ctx context.Context) error {
			none := claim
			none.Kinds = []string{"none"}
			_, err := s.Claim(ctx, now, none)
			return err
		}},
		{"Heartbeat", false, func(ctx context.Context) error {
			_, err := s.Heartbeat(ctx, now, queue.Worker{Name: "w"}, []queue.Heartbeat{{ID: kept.ID, Token: token}})
			return err
		}},
		{"Settle", true, func(ctx context.Context) error {
			_, err := s.Settle(ctx, now, []queue.Outcome{{ID: kept.ID, Token: token, Kind: queue.OutcomeSuccess}})
			return err
		}},
		{"Settle, refused", false, func(ctx context.Context) error {
			_, err := s.Settle(ctx, now, []queue.Outcome{{ID: more.ID, Token: token, Kind: queue.OutcomeSuccess}})
			return err
		}},
		{"Command", true, func(ctx context.Context) error {
			_, err := s.Command(ctx, now, queue.Command{Do: queue.OrderCancel, Filter: queue.Filter{IDs: []queue.ID{more.ID}}})
			return err
		}},
		{"Command that finds nothing", false, func(ctx context.Context) error {
			_, err := s.Command(ctx, now, queue.Command{Do: queue.OrderCancel, Filter: queue.Filter{IDs: []queue.ID{stale}}})
			return err
		}},
		{"Find", false, func(ctx context.Context) error {
			_, err := s.Find(ctx, queue.Filter{}, queue.Page{})
			return err
		}},
		{"Explain", false, func(ctx context.Context) error {
			_, err := s.Explain(ctx, now, stale)
			return err
		}},
		{"Stats", false, func(ctx context.Context) error {
			_, err := s.Stats(ctx, now)
			return err
		}},
		{"Settings", false, func(ctx context.Context) error {
			_, err := s.Settings(ctx)
			return err
		}},
		{"Schedules", false, func(ctx context.Context) error {
			_, err := s.Schedules(ctx)
			return err
		}},
		{"Configure", false, func(ctx context.Context) error {
			return s.Configure(ctx, now, "q", queue.Change{Set: queue.Settings{Max: 1}})
		}},
		{"Configure that changes nothing", false, func(ctx context.Context) error {
			return s.Configure(ctx, now, "q", queue.Change{Set: queue.Settings{Max: 1}})
		}},
		{"Configure, refused", false, func(ctx context.Context) error {
			return s.Configure(ctx, now, "q", queue.Change{Set: queue.Settings{Max: -1}})
		}},
		{"PauseQueue", false, func(ctx context.Context) error { return s.PauseQueue(ctx, now, "q", &queue.Pause{}) }},
		{"Reschedule, refused", false, func(ctx context.Context) error {
			return s.Reschedule(ctx, now, queue.Reschedule{Name: "s", Was: stale, To: &queue.ScheduleState{}})
		}},
	} {
		err := call.do(t.Context())
		if call.answered != (err == nil) || !call.answered && !errors.Is(err, queue.ErrUnavailable) {
			t.Errorf("%s: %v; answered: %t", call.name, err, call.answered)
		}
	}
	under.trouble = errors.New("the disk of the server is full")
	_, err := s.Stats(t.Context(), now)
	const says = "out of date: the disk of the server is full"
	if !errors.Is(err, queue.ErrUnavailable) || !strings.HasSuffix(err.Error(), says) {
		t.Errorf("with a reason: %v", err)
	}
	if err := under.Close(); err != nil {
		t.Error(err)
	}
}
