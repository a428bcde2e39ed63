package httpstore_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/httpstore"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/server"
)

// partial is a store of which a group does not answer.
type partial struct{ queue.Store }

func missingGroup() error {
	return &queue.PartialError{Missing: []queue.MissingGroup{{Name: "mail", Reason: "its database is down"}}}
}

func (p partial) Find(ctx context.Context, f queue.Filter, page queue.Page) ([]queue.Task, error) {
	found, err := p.Store.Find(ctx, f, page)
	return found, errors.Join(err, missingGroup())
}

func (p partial) Settings(ctx context.Context) (map[string]queue.Configured, error) {
	all, err := p.Store.Settings(ctx)
	return all, errors.Join(err, missingGroup())
}

func (p partial) Schedules(ctx context.Context) ([]queue.ScheduleState, error) {
	all, err := p.Store.Schedules(ctx)
	return all, errors.Join(err, missingGroup())
}

// TestC11_PartialAnswers: a client gets what the groups have that answer, and which group is missing. A
// client of an earlier version gets the error alone.
func TestC11_PartialAnswers(t *testing.T) {
	p := partial{memstore.New(memstore.Config{})}
	handler := server.New(p, server.Config{})
	defer handler.Close()
	earlier := false
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if earlier {
			r.Header.Del(wire.Partial)
		}
		handler.ServeHTTP(w, r)
	}))
	defer srv.Close()
	s := open(t, srv.URL, httpstore.Config{Patience: time.Millisecond})
	q := queue.New(s, queue.Config{})
	const tasks = 1500 // more than the server returns in one answer
	for range tasks / 500 {
		batch := make([]queue.NewTask, 500)
		for i := range batch {
			batch[i] = queue.NewTask{ID: q.NewID(), Spec: queue.Spec{Kind: "k"}}
		}
		if _, err := s.Submit(t.Context(), time.Now(), batch); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Configure(t.Context(), "default", queue.Settings{Max: 3}); err != nil {
		t.Fatal(err)
	}
	schedule := queue.ScheduleState{
		Schedule: queue.Schedule{Name: "s", Cron: "@daily", Task: queue.Spec{Kind: "k"}}, Version: q.NewID(),
	}
	err := s.Reschedule(t.Context(), time.Now(), queue.Reschedule{Name: "s", To: &schedule})
	if err != nil {
		t.Fatal(err)
	}
	lists := func() (counts [3]int, errs [3]error) {
		found, err := s.Find(t.Context(), queue.Filter{}, queue.Page{Limit: 2 * tasks})
		settings, settingsErr := s.Settings(t.Context())
		schedules, schedulesErr := s.Schedules(t.Context())
		return [3]int{len(found), len(settings), len(schedules)}, [3]error{err, settingsErr, schedulesErr}
	}
	counts, errs := lists()
	if counts != [3]int{tasks, 1, 1} {
		t.Errorf("%d tasks, settings and schedules", counts)
	}
	for _, err := range errs {
		if !reflect.DeepEqual(err, missingGroup()) || !errors.Is(err, queue.ErrUnavailable) {
			t.Errorf("the error of a partial answer is %v", err)
		}
	}
	earlier = true
	counts, errs = lists()
	if counts != [3]int{} {
		t.Errorf("a client that does not know partial answers gets %d tasks, settings and schedules", counts)
	}
	for _, err := range errs {
		_, isPartial := errors.AsType[*queue.PartialError](err)
		if isPartial || !errors.Is(err, queue.ErrUnavailable) || !strings.Contains(err.Error(), "its database is down") {
			t.Errorf("the error for a client that does not know partial answers is %v", err)
		}
	}
}
