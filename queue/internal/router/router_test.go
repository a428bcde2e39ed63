package router_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/router"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/queue/storetest"
)

// table returns a table of groups that are written as in "mail=news,letters".
func table(t *testing.T, groups ...string) *router.Table {
	t.Helper()
	table, err := tableOf(groups...)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func tableOf(groups ...string) (*router.Table, error) {
	var members []router.Member
	for _, g := range groups {
		name, queues, _ := strings.Cut(g, "=")
		m := router.Member{Name: name}
		if queues != "" {
			m.Queues = strings.Split(queues, ",")
		}
		members = append(members, m)
	}
	return router.NewTable(members)
}

// totals sets limits on all queues together in the default group, which a router refuses. The
// contract has cases for them, and all queues of its cases are of the default group.
type totals struct {
	*router.Store
	rest queue.Store
}

func (s totals) Configure(ctx context.Context, now time.Time, name string, c queue.Change) error {
	if name == "" {
		return s.rest.Configure(ctx, now, name, c)
	}
	return s.Store.Configure(ctx, now, name, c)
}

// open opens a router of two groups. One of them stays empty.
func open(t *testing.T, cfg storetest.Config) storetest.Harness {
	t.Helper()
	store := func() queue.Store {
		return memstore.New(memstore.Config{
			MaxPayload: cfg.MaxPayload, MaxResult: cfg.MaxResult, MaxCheckpoint: cfg.MaxCheckpoint, WatchBuffer: cfg.WatchBuffer,
		})
	}
	rest := store()
	s := router.New(table(t, "other=queue of the other group", "rest"), []queue.Store{store(), rest})
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, queue.ErrClosed) {
			t.Error(err)
		}
	})
	return storetest.Harness{Store: totals{s, rest}}
}

// TestC11_GroupsStore: a router is a store.
func TestC11_GroupsStore(t *testing.T) { storetest.Run(t, open) }

func TestModel_Groups(t *testing.T) { storetest.Model(t, open, 1000) }

// pair is a router of the groups mail, with the queue news, and rest.
type pair struct {
	*router.Store
	mail, rest memstore.Store
	ids        queue.IDs
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{mail: memstore.New(memstore.Config{}), rest: memstore.New(memstore.Config{})}
	p.Store = router.New(table(t, "mail=news", "rest"), []queue.Store{p.mail, p.rest})
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func (p *pair) task(name string) queue.NewTask {
	return queue.NewTask{ID: p.ids.New(start), Spec: queue.Spec{Kind: "work", Options: queue.Options{Queue: name}}}
}

// submit submits a task of a queue.
func (p *pair) submit(t *testing.T, name string) queue.ID {
	t.Helper()
	task := p.task(name)
	if _, err := p.Submit(t.Context(), start, []queue.NewTask{task}); err != nil {
		t.Fatal(err)
	}
	return task.ID
}

// again returns a router of the same groups that knows no tasks, as after a restart.
func (p *pair) again(t *testing.T) *router.Store {
	t.Helper()
	return router.New(table(t, "mail=news", "rest"), []queue.Store{p.mail, p.rest})
}

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// TestC11_GroupsRouteTasks: each task is in the store of the group of its queue, and is found,
// run and settled there, also by a router that has not seen it before.
func TestC11_GroupsRouteTasks(t *testing.T) {
	p := newPair(t)
	names := []string{"news", "", "news", "files"}
	var all []queue.ID
	for _, name := range names {
		all = append(all, p.submit(t, name))
	}
	for group, want := range map[queue.Store][]queue.ID{p.mail: {all[0], all[2]}, p.rest: {all[1], all[3]}} {
		if got := idsOf(t, group, queue.Page{}); !slices.Equal(got, want) {
			t.Errorf("a group has %v, want %v", got, want)
		}
	}
	for _, page := range []queue.Page{{Limit: 1}, {Limit: 3}, {}, {Bytes: 1}, {Newest: true, Limit: 2}} {
		var got []queue.ID
		for {
			part := idsOf(t, p.Store, page)
			if len(part) == 0 || len(got) > len(all) {
				break
			}
			got, page.After = append(got, part...), part[len(part)-1]
		}
		want := slices.Clone(all)
		if page.Newest {
			slices.Reverse(want)
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %+v have %v, want %v", page, got, want)
		}
	}
	worker := queue.Worker{Name: "w", Kinds: map[string][]string{"news": {"work"}, "default": {"work"}}}
	var claimed []queue.Task
	for _, name := range []string{"news", "default"} {
		c, err := p.Claim(t.Context(), start, queue.Claim{
			Worker: "w", Queue: name, Kinds: []string{"work"}, Max: 5, Lease: time.Minute,
		})
		if err != nil {
			t.Fatal(err)
		}
		claimed = append(claimed, c.Tasks...)
	}
	if len(claimed) != 3 {
		t.Fatalf("%d tasks are claimed, want 3", len(claimed))
	}
	for i, s := range []*router.Store{p.Store, p.again(t)} {
		var heartbeats []queue.Heartbeat
		for _, c := range claimed {
			heartbeats = append(heartbeats, queue.Heartbeat{
				ID: c.ID, Token: c.Lease.Token, Lease: time.Minute, Progress: queue.Progress{Done: int64(i + 1)},
			})
		}
		heartbeats = append(heartbeats, queue.Heartbeat{ID: p.ids.New(start), Token: 1, Lease: time.Minute})
		answers, err := s.Heartbeat(t.Context(), start, worker, heartbeats)
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range answers {
			if lost := i == len(claimed); (a.Stop == queue.StopLost) != lost || a.Missing {
				t.Errorf("heartbeat %d has the answer %+v", i, a)
			}
		}
	}
	stats, err := p.Stats(t.Context(), start)
	if err != nil || len(stats.Workers) != 1 || len(stats.Workers[0].Kinds) != 2 || stats.Total.Running != 3 ||
		len(stats.Queues) != 3 || len(stats.Groups) != 2 {
		t.Errorf("the stats are %+v, %v", stats, err)
	}
	var outcomes []queue.Outcome
	for _, c := range claimed {
		outcomes = append(outcomes, queue.Outcome{ID: c.ID, Token: c.Lease.Token, Kind: queue.OutcomeSuccess})
	}
	outcomes = append(outcomes, queue.Outcome{ID: p.ids.New(start), Token: 1, Kind: queue.OutcomeSuccess})
	for _, s := range []*router.Store{p.again(t), p.Store} { // the second call repeats the first
		errs, err := s.Settle(t.Context(), start, outcomes)
		if err != nil || errors.Join(errs[:3]...) != nil || !errors.Is(errs[3], queue.ErrStale) {
			t.Errorf("settle: %v, %v", errs, err)
		}
	}
	for _, id := range all[3:] {
		if reasons, err := p.again(t).Explain(t.Context(), start, id); err != nil || len(reasons) == 0 {
			t.Errorf("explain: %v, %v", reasons, err)
		}
	}
}

func idsOf(t *testing.T, s queue.Store, page queue.Page) (ids []queue.ID) {
	t.Helper()
	found, err := s.Find(t.Context(), queue.Filter{}, page)
	if err != nil {
		t.Fatal(err)
	}
	for i := range found {
		ids = append(ids, found[i].ID)
	}
	return ids
}

// TestC11_GroupsCommands: an order finds the tasks of all groups, up to its limit.
func TestC11_GroupsCommands(t *testing.T) {
	p := newPair(t)
	first, second, third := p.submit(t, "news"), p.submit(t, "files"), p.submit(t, "news")
	for i, c := range []struct {
		filter queue.Filter
		limit  int
		want   int
	}{
		{queue.Filter{IDs: []queue.ID{first, second}}, 0, 2},
		{queue.Filter{Queue: "news"}, 0, 1},
		{queue.Filter{Kind: "work"}, 0, 0},
	} {
		n, err := p.Command(t.Context(), start, queue.Command{Do: queue.OrderCancel, Filter: c.filter, Limit: c.limit})
		if err != nil || n != c.want {
			t.Errorf("command %d has changed %d tasks, %v; want %d", i, n, err, c.want)
		}
	}
	n, err := p.Command(t.Context(), start, queue.Command{Do: queue.OrderRetry, All: true, Limit: 2})
	if err != nil || n != 2 {
		t.Errorf("a command for two of three tasks has changed %d, %v", n, err)
	}
	if _, err := p.Explain(t.Context(), start, third); err != nil {
		t.Error(err)
	}
}

// TestC11_GroupsRefuse: what would need tasks of several groups in one step is refused, and the
// error names both groups.
func TestC11_GroupsRefuse(t *testing.T) {
	p := newPair(t)
	done, batch := p.submit(t, "files"), p.ids.New(start)
	ofBatch := p.task("files")
	ofBatch.Batch = batch
	if _, err := p.Submit(t.Context(), start, []queue.NewTask{ofBatch}); err != nil {
		t.Fatal(err)
	}
	changed := func(change func(*queue.NewTask)) []queue.NewTask {
		task := p.task("news")
		change(&task)
		return []queue.NewTask{task}
	}
	calls := map[string]func(s *router.Store) error{
		"several groups in a call": func(s *router.Store) error {
			_, err := s.Submit(t.Context(), start, []queue.NewTask{p.task("news"), p.task("files")})
			return err
		},
	}
	for name, tasks := range map[string][]queue.NewTask{
		"after":       changed(func(n *queue.NewTask) { n.After = []queue.ID{done} }),
		"after any":   changed(func(n *queue.NewTask) { n.AfterAny = []queue.ID{done} }),
		"after batch": changed(func(n *queue.NewTask) { n.AfterBatch = batch }),
	} {
		calls[name] = func(s *router.Store) error {
			_, err := s.Submit(t.Context(), start, tasks)
			return err
		}
	}
	for name, call := range calls {
		for _, s := range []*router.Store{p.Store, p.again(t)} {
			err := call(s)
			if !errors.Is(err, queue.ErrInvalid) || !strings.Contains(err.Error(), "group mail") ||
				!strings.Contains(err.Error(), "group rest") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	_, err := p.Submit(t.Context(), start, changed(func(n *queue.NewTask) { n.Batch = batch }))
	if !errors.Is(err, queue.ErrInvalid) {
		t.Errorf("a task of a batch of another group: %v", err)
	}
	if got := idsOf(t, p.mail, queue.Page{}); len(got) != 0 {
		t.Errorf("the group mail has %v", got)
	}
	for _, c := range []queue.Change{
		{Set: queue.Settings{Total: 3}},
		{Set: queue.Settings{TotalPerKey: 3}},
		{Unlimited: []queue.Field{queue.FieldTotal}},
		{Key: "k", Set: queue.Settings{Total: 3}},
	} {
		if err := p.Configure(t.Context(), start, "", c); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A batch whose tasks have been refused is of no group.
func TestC12_BatchOfARefusedCallIsOfNoGroup(t *testing.T) {
	p := newPair(t)
	bad, good := p.task("news"), p.task("files")
	bad.Batch, bad.MaxAttempts = p.ids.New(start), -1
	if _, err := p.Submit(t.Context(), start, []queue.NewTask{bad}); !errors.Is(err, queue.ErrInvalid) {
		t.Fatal(err)
	}
	good.Batch = bad.Batch
	if _, err := p.Submit(t.Context(), start, []queue.NewTask{good}); err != nil {
		t.Errorf("the batch has no tasks yet: %v", err)
	}
}

// finds is a store that counts calls of Find.
type finds struct {
	queue.Store
	n *atomic.Int64
}

func (f finds) Find(ctx context.Context, filter queue.Filter, p queue.Page) ([]queue.Task, error) {
	f.n.Add(1)
	return f.Store.Find(ctx, filter, p)
}

// TestC12_BatchIsSearchedOnce: a process that does not know the batch before a task asks each group once, the
// group of the task first.
func TestC12_BatchIsSearchedOnce(t *testing.T) {
	for name, row := range map[string]struct {
		exists bool
		want   [2]int64 // calls of Find by group
	}{
		"the group of the task has the batch": {true, [2]int64{1, 0}},
		"no group has the batch":              {false, [2]int64{1, 1}},
	} {
		p := newPair(t)
		before, after := p.task("news"), p.task("news")
		before.Batch, after.AfterBatch = p.ids.New(start), p.ids.New(start)
		if row.exists {
			after.AfterBatch = before.Batch
		}
		if _, err := p.Submit(t.Context(), start, []queue.NewTask{before}); err != nil {
			t.Fatal(err)
		}
		var mail, rest atomic.Int64
		s := router.New(table(t, "mail=news", "rest"), []queue.Store{finds{p.mail, &mail}, finds{p.rest, &rest}})
		if _, err := s.Submit(t.Context(), start, []queue.NewTask{after}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := [2]int64{mail.Load(), rest.Load()}; got != row.want {
			t.Errorf("%s: the groups were asked %v times, want %v", name, got, row.want)
		}
	}
}

// TestC11_GroupsSettings: settings and pauses are those of the group of the queue, and those of
// all queues hold in each group.
func TestC11_GroupsSettings(t *testing.T) {
	p := newPair(t)
	set := func(name string, most int) {
		t.Helper()
		if err := p.Configure(t.Context(), start, name, queue.Change{Set: queue.Settings{Max: most}}); err != nil {
			t.Fatal(err)
		}
	}
	set("", 7)
	set("news", 3)
	if err := p.PauseQueue(t.Context(), start, "files", &queue.Pause{}); err != nil {
		t.Fatal(err)
	}
	if err := p.PauseQueue(t.Context(), start, "", &queue.Pause{}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{"mail": {"", "news"}, "rest": {"", "files"}} {
		s := queue.Store(p.mail)
		if name == "rest" {
			s = p.rest
		}
		wantSettings(t, name, s, want)
	}
	wantSettings(t, "both", p.Store, []string{"", "files", "news"})
}

func wantSettings(t *testing.T, name string, s queue.Store, want []string) {
	t.Helper()
	settings, err := s.Settings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for name := range settings {
		got = append(got, name)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%s has settings of %q, want %q", name, got, want)
	}
}

// TestC11_GroupsSchedules: a schedule is in the group of its queue, and its name is used once.
func TestC11_GroupsSchedules(t *testing.T) {
	p := newPair(t)
	next := func(name string) *queue.ScheduleState {
		return &queue.ScheduleState{
			Schedule: queue.Schedule{
				Name: "s", Cron: "@daily", Task: queue.Spec{Kind: "work", Options: queue.Options{Queue: name}},
			},
			Version: p.ids.New(start), Next: start.Add(time.Hour),
		}
	}
	first := next("news")
	if err := p.Reschedule(t.Context(), start, queue.Reschedule{Name: "s", To: first}); err != nil {
		t.Fatal(err)
	}
	if in, _ := p.mail.Schedules(t.Context()); len(in) != 1 {
		t.Errorf("the group mail has %d schedules", len(in))
	}
	for _, was := range []queue.ID{{}, first.Version} {
		err := p.Reschedule(t.Context(), start, queue.Reschedule{Name: "s", Was: was, To: next("files")})
		if !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("the same name in another group: %v", err)
		}
	}
	other := queue.Reschedule{Name: "s", Was: p.ids.New(start), To: next("news")}
	if err := p.Reschedule(t.Context(), start, other); !errors.Is(err, queue.ErrChanged) {
		t.Errorf("another version: %v", err)
	}
	if all, err := p.Schedules(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	if err := p.Reschedule(t.Context(), start, queue.Reschedule{Name: "s", Was: first.Version}); err != nil {
		t.Fatal(err)
	}
	if all, err := p.Schedules(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
}

// TestC11_GroupsWatch: a watch has the events of all groups, none before begun is called.
func TestC11_GroupsWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		ctx, stop := context.WithCancel(t.Context())
		var mu sync.Mutex
		var queues []string
		ended := make(chan error, 1)
		begun := make(chan struct{})
		go func() {
			ended <- p.Watch(ctx, func() { close(begun) }, func(e queue.Event) {
				mu.Lock()
				defer mu.Unlock()
				queues = append(queues, e.Queue)
			})
		}()
		<-begun
		p.submit(t, "news")
		p.submit(t, "files")
		synctest.Wait()
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		slices.Sort(queues)
		if !slices.Equal(queues, []string{"files", "news"}) {
			t.Errorf("events of the queues %q", queues)
		}
	})
}

// late is a store whose watch begins when a channel is closed.
type late struct {
	queue.Store
	begin chan struct{}
}

func (l late) Watch(ctx context.Context, begun func(), fn func(queue.Event)) error {
	<-l.begin
	return l.Store.Watch(ctx, begun, fn)
}

// TestC11_GroupsWatchBegins: an event of a group that watches already waits for the others.
func TestC11_GroupsWatchBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		l := late{p.mail, make(chan struct{})}
		s := router.New(table(t, "mail=news", "rest"), []queue.Store{l, p.rest})
		ctx, stop := context.WithCancel(t.Context())
		begun, events, ended := false, 0, make(chan error, 1)
		go func() {
			ended <- s.Watch(ctx, func() { begun = true }, func(queue.Event) { events++ })
		}()
		synctest.Wait()
		p.submit(t, "files")
		synctest.Wait()
		if begun || events != 0 {
			t.Errorf("before the last group begins: begun %t, %d events", begun, events)
		}
		close(l.begin)
		synctest.Wait()
		if !begun || events != 1 {
			t.Errorf("then: begun %t, %d events", begun, events)
		}
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// silent is a store that does not answer until the context of a call ends.
type silent struct{ queue.Store }

func (silent) Heartbeat(ctx context.Context, _ time.Time, _ queue.Worker, _ []queue.Heartbeat) ([]queue.Answer, error) {
	<-ctx.Done()
	return nil, fmt.Errorf("%w: %w", queue.ErrUnavailable, context.Cause(ctx))
}

func (silent) Maintain(ctx context.Context, _ time.Time, _ int) (time.Time, error) {
	<-ctx.Done()
	return time.Time{}, fmt.Errorf("%w: %w", queue.ErrUnavailable, context.Cause(ctx))
}

func (silent) Settle(ctx context.Context, _ time.Time, _ []queue.Outcome) ([]error, error) {
	<-ctx.Done()
	return nil, fmt.Errorf("%w: %w", queue.ErrUnavailable, context.Cause(ctx))
}

func (silent) Schedules(ctx context.Context) ([]queue.ScheduleState, error) {
	<-ctx.Done()
	return nil, fmt.Errorf("%w: %w", queue.ErrUnavailable, context.Cause(ctx))
}

func (silent) Stats(ctx context.Context, _ time.Time) (queue.Stats, error) {
	<-ctx.Done()
	return queue.Stats{}, fmt.Errorf("%w: %w", queue.ErrUnavailable, context.Cause(ctx))
}

func (silent) PauseQueue(ctx context.Context, _ time.Time, _ string, _ *queue.Pause) error {
	<-ctx.Done()
	return fmt.Errorf("%w: %w", queue.ErrUnavailable, context.Cause(ctx))
}

func (silent) Find(ctx context.Context, _ queue.Filter, _ queue.Page) ([]queue.Task, error) {
	<-ctx.Done()
	return nil, fmt.Errorf("%w: %w", queue.ErrUnavailable, context.Cause(ctx))
}

func (silent) Explain(ctx context.Context, _ time.Time, _ queue.ID) ([]queue.Reason, error) {
	<-ctx.Done()
	return nil, fmt.Errorf("%w: %w", queue.ErrUnavailable, context.Cause(ctx))
}

func (silent) Command(context.Context, time.Time, queue.Command) (int, error) {
	return 0, queue.ErrUnavailable
}

// TestC11_SilentGroupAndOperators: schedules of the other groups tick, commands for their tasks
// succeed, and the statistics name the silent group.
func TestC11_SilentGroupAndOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		every := queue.Schedule{Name: "s", Cron: "@every 10s", Task: queue.Spec{Kind: "work"}}
		if err := queue.New(p.Store, queue.Config{}).Schedule(t.Context(), every); err != nil {
			t.Fatal(err)
		}
		s := router.New(table(t, "mail=news", "rest"), []queue.Store{silent{p.mail}, p.rest})
		defer s.Close()
		q := queue.New(s, queue.Config{Logger: slog.New(slog.DiscardHandler)})
		ran := 0
		queue.Kind[any]("work").Handle(q, func(context.Context, *queue.Job[any]) error { ran++; return nil })
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if err := q.Run(ctx, stint.New(1, stint.Config{})); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if ran < 4 {
			t.Errorf("the schedule has run %d times in a minute, want about 6", ran)
		}
		if all, err := s.Schedules(t.Context()); len(all) != 1 || !errors.Is(err, queue.ErrUnavailable) {
			t.Errorf("schedules: %+v, %v", all, err)
		}
		task, err := queue.Kind[any]("work").Submit(t.Context(), q, nil, queue.Options{RunAt: time.Now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Cancel(t.Context(), task.ID); err != nil {
			t.Errorf("cancel: %v", err)
		}
		stats, err := s.Stats(t.Context(), time.Now())
		if err != nil || !strings.Contains(stats.Refuses, "group mail: ") {
			t.Errorf("stats: %+v, %v", stats, err)
		}
	})
}

// TestC11_SilentGroupAndRefusals: tasks that are refused are refused soon, and all queues of the groups that
// answer are paused and resumed, with an error that names the silent one.
func TestC11_SilentGroupAndRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		s := router.New(table(t, "mail=news", "rest"), []queue.Store{p.mail, silent{p.rest}})
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		began := time.Now()
		task := p.task("news")
		task.After = []queue.ID{p.ids.New(start)}
		_, err := s.Submit(ctx, start, []queue.NewTask{task})
		if d := time.Since(began); !errors.Is(err, queue.ErrInvalid) || d > 3*time.Second {
			t.Errorf("a task after one that does not exist is refused after %s: %v", d, err)
		}
		for _, pause := range []*queue.Pause{{Reason: "backup"}, nil} {
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			err := s.PauseQueue(ctx, start, "", pause)
			if !errors.Is(err, queue.ErrUnavailable) || !strings.Contains(err.Error(), "group rest: ") {
				t.Errorf("pause %v: %v", pause, err)
			}
			if settings, err := p.mail.Settings(t.Context()); err != nil || (settings[""].Paused != nil) != (pause != nil) {
				t.Errorf("after pause %v, the other group has %+v, %v", pause, settings, err)
			}
		}
	})
}

// TestC11_GroupsCloseBesideMaintain: Close waits for the calls to a slow group, also for one that begins at
// the same time.
func TestC11_GroupsCloseBesideMaintain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			p := newPair(t)
			s := router.New(table(t, "mail=news", "rest"), []queue.Store{p.mail, silent{p.rest}})
			if _, err := s.Maintain(t.Context(), start, 0); err != nil { // the group is found to be slow
				t.Fatal(err)
			}
			var calls sync.WaitGroup
			calls.Go(func() { _, _ = s.Maintain(t.Context(), start, 0) }) // the store may be closed
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			calls.Wait()
		}
	})
}

// TestC11_GroupThatDoesNotAnswer: the tasks of other groups keep their leases, and those of the
// silent group are neither extended nor stopped.
func TestC11_GroupThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		for _, name := range []string{"news", "files"} {
			p.submit(t, name)
		}
		s := router.New(table(t, "mail=news", "rest"), []queue.Store{silent{p.mail}, p.rest})
		var heartbeats []queue.Heartbeat
		for _, name := range []string{"news", "files"} {
			c, err := s.Claim(t.Context(), start, queue.Claim{
				Worker: "w", Queue: name, Kinds: []string{"work"}, Max: 1, Lease: time.Minute,
			})
			if err != nil || len(c.Tasks) != 1 {
				t.Fatal(c, err)
			}
			heartbeats = append(heartbeats, queue.Heartbeat{
				ID: c.Tasks[0].ID, Token: c.Tasks[0].Lease.Token, Lease: time.Minute,
			})
		}
		worker := queue.Worker{Name: "w", Kinds: map[string][]string{"news": {"work"}, "files": {"work"}}}
		began := time.Now()
		again := router.New(table(t, "mail=news", "rest"), []queue.Store{silent{p.mail}, p.rest})
		for _, s := range []*router.Store{s, again} {
			answers, err := s.Heartbeat(t.Context(), start.Add(time.Second), worker, heartbeats)
			if err != nil || !answers[0].Missing || answers[0].Stop != 0 || answers[1] != (queue.Answer{}) {
				t.Errorf("%+v, %v", answers, err)
			}
		}
		if next, err := s.Maintain(t.Context(), start, 0); err != nil || !next.Equal(start.Add(time.Second)) {
			t.Errorf("maintain: %v, %v", next, err)
		}
		if d := time.Since(began); d > 15*time.Second {
			t.Errorf("the calls took %s", d)
		}
		both := router.New(table(t, "mail=news", "rest"), []queue.Store{silent{p.mail}, silent{p.rest}})
		if answers, err := both.Heartbeat(t.Context(), start, worker, heartbeats); !errors.Is(err, queue.ErrUnavailable) {
			t.Errorf("no group answers: %+v, %v", answers, err)
		}
	})
}

// TestC11_SilentGroupAndARestart: a process that has just started does not know the groups of the tasks
// that others run. While the default group is silent it extends those of another group, for which it waits
// for the silent one no longer than once, and settles them at once.
func TestC11_SilentGroupAndARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.submit(t, "news")
		c, err := p.Claim(t.Context(), start, queue.Claim{
			Worker: "w", Queue: "news", Kinds: []string{"work"}, Max: 1, Lease: time.Minute,
		})
		if err != nil || len(c.Tasks) != 1 {
			t.Fatal(c, err)
		}
		id, token := c.Tasks[0].ID, c.Tasks[0].Lease.Token
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		again := func() *router.Store {
			return router.New(table(t, "mail=news", "rest"), []queue.Store{p.mail, silent{p.rest}})
		}
		s, worker := again(), queue.Worker{Name: "w", Kinds: map[string][]string{"news": {"work"}}}
		for _, most := range []time.Duration{3 * time.Second, 0} {
			began := time.Now()
			answers, err := s.Heartbeat(ctx, start, worker, []queue.Heartbeat{{ID: id, Token: token, Lease: time.Minute}})
			if err != nil || answers[0] != (queue.Answer{}) {
				t.Errorf("heartbeat: %+v, %v", answers, err)
			}
			if d := time.Since(began); d > most {
				t.Errorf("a heartbeat took %s, want %s at most", d, most)
			}
		}
		outcomes := []queue.Outcome{{ID: id, Token: token, Kind: queue.OutcomeSuccess}}
		began := time.Now()
		if errs, err := again().Settle(ctx, start, outcomes); err != nil || errs[0] != nil {
			t.Errorf("settle: %v, %v", errs, err)
		}
		if d := time.Since(began); d > 0 {
			t.Errorf("settle waited %s for the silent group", d)
		}
		outcomes = append(outcomes, queue.Outcome{ID: p.ids.New(start), Token: 1, Kind: queue.OutcomeSuccess})
		if errs, err := again().Settle(ctx, start, outcomes); !errors.Is(err, queue.ErrUnavailable) {
			t.Errorf("settle of a task that the silent group may have: %v, %v", errs, err)
		}
	})
}

// delayed is a store that settles after 5 ms.
type delayed struct{ queue.Store }

func (d delayed) Settle(ctx context.Context, now time.Time, outcomes []queue.Outcome) ([]error, error) {
	time.Sleep(5 * time.Millisecond)
	return d.Store.Settle(ctx, now, outcomes)
}

// broken is a store that settles nothing and says so at once.
type broken struct{ queue.Store }

func (broken) Settle(context.Context, time.Time, []queue.Outcome) ([]error, error) {
	return nil, queue.ErrUnavailable
}

// TestC11_OutcomeThatAnotherGroupRefuses: an outcome of a task whose group is not known is accepted if the
// group of the task accepts it, also if another group answers first, with an error or by its own limits. It
// is refused if no group accepts it.
func TestC11_OutcomeThatAnotherGroupRefuses(t *testing.T) {
	small := func(limit int) queue.Store { return memstore.New(memstore.Config{MaxResult: limit}) }
	for name, row := range map[string]struct {
		mail, rest queue.Store
		want       error // for a result of 100 bytes
	}{
		"refused by the other group at once": {small(10), delayed{small(0)}, nil},
		"refused by the other group later":   {delayed{small(10)}, small(0), nil},
		"the other group fails at once":      {broken{small(0)}, delayed{small(0)}, nil},
		"refused by both groups":             {delayed{small(10)}, small(50), queue.ErrTooLarge},
		"refused by the group of the task":   {small(0), delayed{small(50)}, queue.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ids queue.IDs
				id := ids.New(start)
				tasks := []queue.NewTask{{ID: id, Spec: queue.Spec{Kind: "work"}}}
				if _, err := row.rest.Submit(t.Context(), start, tasks); err != nil {
					t.Fatal(err)
				}
				c, err := row.rest.Claim(t.Context(), start, queue.Claim{
					Worker: "w", Queue: queue.DefaultQueue, Kinds: []string{"work"}, Max: 1, Lease: time.Minute,
				})
				if err != nil || len(c.Tasks) != 1 {
					t.Fatal(c, err)
				}
				s := router.New(table(t, "mail=news", "rest"), []queue.Store{row.mail, row.rest})
				errs, err := s.Settle(t.Context(), start, []queue.Outcome{{
					ID: id, Token: c.Tasks[0].Lease.Token, Kind: queue.OutcomeSuccess, Result: make([]byte, 100),
				}})
				if err != nil || !errors.Is(errs[0], row.want) {
					t.Fatalf("settle: %v, %v; want %v", errs, err, row.want)
				}
				found, err := row.rest.Find(t.Context(), queue.Filter{IDs: []queue.ID{id}}, queue.Page{})
				if err != nil || len(found) != 1 || (found[0].State == queue.Succeeded) != (row.want == nil) {
					t.Errorf("then the task is %+v, %v", found, err)
				}
			})
		})
	}
}

// TestC11_CheckpointThatAnotherGroupRefuses: a checkpoint of a task whose group is not known is judged by the
// group of the task, also if a group with a lower limit is asked first.
func TestC11_CheckpointThatAnotherGroupRefuses(t *testing.T) {
	for name, row := range map[string]struct {
		mail, rest int   // limits of checkpoints; the default group is asked first
		want       error // for a checkpoint of 100 bytes of a task of mail beside one of 10 bytes of rest
	}{
		"over the limit of the other group":     {0, 50, nil},
		"over the limits of both groups":        {50, 50, queue.ErrTooLarge},
		"over the limit of the group of a task": {50, 0, queue.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pair{
				mail: memstore.New(memstore.Config{MaxCheckpoint: row.mail}),
				rest: memstore.New(memstore.Config{MaxCheckpoint: row.rest}),
			}
			p.Store = p.again(t)
			var heartbeats []queue.Heartbeat
			for i, name := range []string{"news", "files"} {
				p.submit(t, name)
				c, err := p.Claim(t.Context(), start, queue.Claim{
					Worker: "w", Queue: name, Kinds: []string{"work"}, Max: 1, Lease: time.Minute,
				})
				if err != nil || len(c.Tasks) != 1 {
					t.Fatal(c, err)
				}
				heartbeats = append(heartbeats, queue.Heartbeat{
					ID: c.Tasks[0].ID, Token: c.Tasks[0].Lease.Token, Lease: time.Minute,
					Checkpoint: bytes.Repeat([]byte("x"), []int{100, 10}[i]),
				})
			}
			worker := queue.Worker{Name: "w", Kinds: map[string][]string{"news": {"work"}, "files": {"work"}}}
			s := p.again(t)
			answers, err := s.Heartbeat(t.Context(), start.Add(time.Second), worker, heartbeats)
			if !errors.Is(err, row.want) {
				t.Fatalf("%+v, %v; want %v", answers, err, row.want)
			}
			if row.want != nil {
				return
			}
			for i, group := range []queue.Store{p.mail, p.rest} {
				found, err := group.Find(t.Context(), queue.Filter{IDs: []queue.ID{heartbeats[i].ID}}, queue.Page{})
				if err != nil || len(found) != 1 || !bytes.Equal(found[0].Checkpoint, heartbeats[i].Checkpoint) {
					t.Errorf("task %d then is %+v, %v; its answer was %+v", i, found, err, answers[i])
				}
			}
		})
	}
}

// TestC11_SilentGroupDelaysNoOutcomes: the outcomes of other groups are durable though a group does not answer to
// those of its tasks in the same call, also if the groups of the other tasks are not known.
func TestC11_SilentGroupDelaysNoOutcomes(t *testing.T) {
	for _, known := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t)
			s := router.New(table(t, "mail=news", "rest"), []queue.Store{p.mail, silent{p.rest}})
			var outcomes []queue.Outcome
			for _, name := range []string{"files", "news"} {
				p.submit(t, name)
				claims := queue.Store(s)
				if name == "news" && !known {
					claims = p.mail // as another process with the same name, before this one
				}
				c, err := claims.Claim(t.Context(), start, queue.Claim{
					Worker: "w", Queue: name, Kinds: []string{"work"}, Max: 1, Lease: time.Minute,
				})
				if err != nil || len(c.Tasks) != 1 {
					t.Fatal(c, err)
				}
				outcomes = append(outcomes, queue.Outcome{
					ID: c.Tasks[0].ID, Token: c.Tasks[0].Lease.Token, Kind: queue.OutcomeSuccess,
				})
			}
			ctx, stop := context.WithCancel(t.Context())
			var settling sync.WaitGroup
			settling.Go(func() {
				if errs, err := s.Settle(ctx, start, outcomes); !errors.Is(err, queue.ErrUnavailable) {
					t.Errorf("known: %t: settle: %v, %v", known, errs, err)
				}
			})
			synctest.Wait()
			found, err := p.mail.Find(t.Context(), queue.Filter{IDs: []queue.ID{outcomes[1].ID}}, queue.Page{Durable: true})
			if err != nil || len(found) != 1 || found[0].State != queue.Succeeded {
				t.Errorf("known: %t: while the silent group is waited for, the task of the other is %+v, %v", known, found, err)
			}
			stop()
			settling.Wait()
		})
	}
}

// unsettled is a store that does not answer Settle while it is away.
type unsettled struct {
	queue.Store
	away *atomic.Bool
}

func (u unsettled) Settle(ctx context.Context, now time.Time, outcomes []queue.Outcome) ([]error, error) {
	if u.away.Load() {
		<-ctx.Done()
		return nil, fmt.Errorf("%w: %w", queue.ErrUnavailable, context.Cause(ctx))
	}
	return u.Store.Settle(ctx, now, outcomes)
}

// runner is a Run on the queue news, whose group does not answer to outcomes while away is true, and
// the queue files of another group.
type runner struct {
	*queue.Queue
	store *router.Store
	away  *atomic.Bool
	stop  context.CancelFunc
	done  chan error
}

// run starts a Run while the group of news is away. The handler of the kind quick returns at once, that of
// the kind slow when its context ends.
func run(t *testing.T) runner {
	t.Helper()
	p, away, done := newPair(t), new(atomic.Bool), make(chan error, 1)
	away.Store(true)
	s := router.New(table(t, "mail=news", "rest"), []queue.Store{unsettled{p.mail, away}, p.rest})
	q := queue.New(s, queue.Config{Lease: time.Minute, Grace: 5 * time.Second})
	q.Handle("quick", func(context.Context, *queue.Attempt) error { return nil })
	q.Handle("slow", func(ctx context.Context, _ *queue.Attempt) error { <-ctx.Done(); return ctx.Err() })
	ctx, stop := context.WithCancel(t.Context())
	go func() { done <- q.Run(ctx, stint.New(4, stint.Config{}), "news", "files") }()
	synctest.Wait()
	return runner{q, s, away, stop, done}
}

// start submits a task, and waits until it is running or has ended.
func (r runner) start(t *testing.T, kind, name string) queue.ID {
	t.Helper()
	task, err := queue.Kind[any](kind).Submit(t.Context(), r.Queue, nil, queue.Options{Queue: name})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return task.ID
}

// is checks the durable state of a task, which has lost no lease.
func (r runner) is(t *testing.T, id queue.ID, want queue.State) {
	t.Helper()
	found, err := r.store.Find(t.Context(), queue.Filter{IDs: []queue.ID{id}}, queue.Page{Durable: true})
	if err != nil || len(found) != 1 {
		t.Fatalf("%d tasks, %v; want one", len(found), err)
	}
	if got := found[0]; got.State != want || got.Crashes != 0 {
		t.Errorf("a task of %s is %s and has lost %d leases, want it %s", got.Queue, got.State, got.Crashes, want)
	}
}

// TestC11_SilentGroupDelaysNoLaterOutcomes: while a Run waits for a silent group, the later outcomes of queues of
// other groups are durable at once. That of the silent group is settled when it answers again.
func TestC11_SilentGroupDelaysNoLaterOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t)
		news := r.start(t, "quick", "news")
		for range 10 {
			r.is(t, r.start(t, "quick", "files"), queue.Succeeded)
			time.Sleep(20 * time.Second) // all of them are longer than some leases
		}
		r.is(t, news, queue.Running)
		r.away.Store(false)
		time.Sleep(2 * time.Minute)
		r.is(t, news, queue.Succeeded)
		r.stop()
		if err := <-r.done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestC11_RunEndsBesideASilentGroup: when a Run ends, the outcomes of other groups do not wait for a silent group.
// Run waits for that group as long as a lease, or until Halt.
func TestC11_RunEndsBesideASilentGroup(t *testing.T) {
	for _, halted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := run(t)
			news, files := r.start(t, "quick", "news"), r.start(t, "slow", "files")
			r.is(t, files, queue.Running)
			began := time.Now()
			r.stop()
			time.Sleep(5 * time.Second)
			synctest.Wait()
			r.is(t, files, queue.Waiting) // released at the end of Grace
			select {
			case err := <-r.done:
				t.Fatalf("Run has returned %v, and not waited for the silent group", err)
			default:
			}
			if halted {
				r.Halt()
			}
			err := <-r.done
			if !errors.Is(err, context.Canceled) || halted != strings.Contains(err.Error(), "has not taken all outcomes") {
				t.Errorf("halted: %t: Run returned %v", halted, err)
			}
			most := 70 * time.Second
			if halted {
				most = 6 * time.Second
			}
			if d := time.Since(began); d > most {
				t.Errorf("halted: %t: Run returned after %s, want %s at most", halted, d, most)
			}
			r.is(t, news, queue.Running)
			time.Sleep(2 * time.Minute) // the outcomes are given up
		})
	}
}

// interrupted is a store that does not answer Maintain while it is away. Its error is then that of
// the context alone, as that of a client of another process.
type interrupted struct {
	queue.Store
	away *atomic.Bool
}

func (i interrupted) Maintain(ctx context.Context, now time.Time, limit int) (time.Time, error) {
	if i.away.Load() {
		<-ctx.Done()
		return time.Time{}, context.Cause(ctx)
	}
	return i.Store.Maintain(ctx, now, limit)
}

// TestC11_SilentGroupDelaysNoTasks: delayed tasks of the other groups start in time, also if a task
// of the silent group is due, and those of the silent group when it answers again.
func TestC11_SilentGroupDelaysNoTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, away := newPair(t), new(atomic.Bool)
		s := router.New(table(t, "mail=news", "rest"), []queue.Store{interrupted{p.mail, away}, p.rest})
		q := queue.New(s, queue.Config{Logger: slog.New(slog.DiscardHandler)})
		ctx, stop := context.WithCancel(t.Context())
		var mu sync.Mutex
		late := make(map[string][]time.Duration) // by queue
		work := queue.Kind[time.Time]("work")
		work.Handle(q, func(_ context.Context, j *queue.Job[time.Time]) error {
			mu.Lock()
			defer mu.Unlock()
			late[j.Queue] = append(late[j.Queue], time.Since(j.Args))
			return nil
		})
		submit := func(name string, in time.Duration) {
			at := time.Now().Add(in)
			if _, err := work.Submit(t.Context(), q, at, queue.Options{Queue: name, RunAt: at}); err != nil {
				t.Error(err)
			}
		}
		done := make(chan error, 1)
		go func() { done <- q.Run(ctx, stint.New(1, stint.Config{}), "news", "files") }()
		synctest.Wait()
		away.Store(true)
		time.Sleep(10 * time.Second) // the silence is noticed
		submit("news", 5*time.Second)
		for n := range 20 {
			submit("files", time.Duration(n)*1500*time.Millisecond)
		}
		time.Sleep(40 * time.Second)
		away.Store(false)
		time.Sleep(10 * time.Second)
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if len(late["files"]) != 20 || slices.Max(late["files"]) > 100*time.Millisecond {
			t.Errorf("the tasks of the other group started late by %v", late["files"])
		}
		if len(late["news"]) != 1 || late["news"][0] > 40*time.Second {
			t.Errorf("the task of the group that was silent started late by %v", late["news"])
		}
	})
}

// TestC11_SilentGroupAndReads: what concerns tasks of other groups by their IDs is answered at once,
// also by a router that does not know their groups. Their schedules can be removed.
func TestC11_SilentGroupAndReads(t *testing.T) {
	for _, other := range []string{"news", "files"} { // a queue of the group that answers
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t)
			ids := []queue.ID{p.submit(t, other), p.submit(t, other)}
			schedule := queue.Schedule{
				Name: "s", Cron: "@daily", Task: queue.Spec{Kind: "work", Options: queue.Options{Queue: other}},
			}
			if err := queue.New(p.Store, queue.Config{}).Schedule(t.Context(), schedule); err != nil {
				t.Fatal(err)
			}
			fresh := func() *router.Store { // knows the place of no task
				stores := []queue.Store{p.mail, silent{p.rest}}
				if other == "files" {
					stores = []queue.Store{silent{p.mail}, p.rest}
				}
				return router.New(table(t, "mail=news", "rest"), stores)
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			began := time.Now()
			if reasons, err := fresh().Explain(ctx, start, ids[0]); err != nil || len(reasons) == 0 {
				t.Errorf("explain: %v, %v", reasons, err)
			}
			for n := range ids {
				s := fresh()
				for range 2 {
					found, err := s.Find(ctx, queue.Filter{IDs: ids[:n+1]}, queue.Page{})
					if err != nil || len(found) != n+1 {
						t.Errorf("find %d tasks by their IDs: %d, %v", n+1, len(found), err)
					}
				}
				if _, err := s.Find(ctx, queue.Filter{IDs: ids[:1], States: []queue.State{queue.Dead}}, queue.Page{}); err != nil {
					t.Errorf("find a task in another state, in a group that is known: %v", err)
				}
			}
			if d := time.Since(began); d > 0 {
				t.Errorf("the calls took %s", d)
			}
			if err := queue.New(fresh(), queue.Config{}).Unschedule(ctx, "s"); err != nil {
				t.Errorf("remove a schedule: %v", err)
			}
			none := []queue.ID{p.ids.New(start)}
			if _, err := fresh().Explain(ctx, start, none[0]); !errors.Is(err, queue.ErrUnavailable) {
				t.Errorf("explain a task that the silent group may have: %v", err)
			}
			if _, err := fresh().Find(ctx, queue.Filter{IDs: none}, queue.Page{}); !errors.Is(err, queue.ErrUnavailable) {
				t.Errorf("find a task that the silent group may have: %v", err)
			}
		})
	}
}

// TestC11_SilentGroupAndLists: lists of tasks, settings and schedules have those of the groups that
// answer, and name the silent one. Once it is silent, lists of many pages do not wait 3 s for each.
func TestC11_SilentGroupAndLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		const tasks = 250
		for range tasks {
			p.submit(t, "files")
		}
		p.submit(t, "news")
		away := &muted{Store: p.mail, away: new(atomic.Bool)}
		s := router.New(table(t, "mail=news", "rest"), []queue.Store{away, p.rest})
		q := queue.New(s, queue.Config{})
		for _, name := range []string{"news", "files"} {
			if err := q.Configure(t.Context(), name, queue.Settings{Max: 1}); err != nil {
				t.Fatal(err)
			}
		}
		lists := func() (found, settings int, errs []error) {
			var err error
			for task, yielded := range q.Find(t.Context(), queue.Filter{}) {
				if err = yielded; err == nil && !task.ID.IsZero() {
					found++
				}
			}
			all, err2 := q.Settings(t.Context())
			_, err3 := q.Schedules(t.Context())
			return found, len(all), []error{err, err2, err3}
		}
		if found, settings, errs := lists(); found != tasks+1 || settings != 2 || errors.Join(errs...) != nil {
			t.Errorf("all groups answer: %d tasks, %d settings, %v", found, settings, errs)
		}
		away.away.Store(true)
		began := time.Now()
		found, settings, errs := lists()
		for _, err := range errs {
			partial, ok := errors.AsType[*queue.PartialError](err)
			if !ok || len(partial.Missing) != 1 || partial.Missing[0].Name != "mail" || !errors.Is(err, queue.ErrUnavailable) ||
				!strings.Contains(err.Error(), "group mail does not answer: ") {
				t.Errorf("an answer without the silent group says %v", err)
			}
		}
		if d := time.Since(began); found != tasks || settings != 1 || d > 6*time.Second {
			t.Errorf("without the silent group: %d tasks, %d settings, after %s", found, settings, d)
		}
		away.away.Store(false)
		if found, settings, errs := lists(); found != tasks+1 || settings != 2 || errors.Join(errs...) != nil {
			t.Errorf("the group answers again: %d tasks, %d settings, %v", found, settings, errs)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		away.away.Store(true)
		_, err := s.Find(ctx, queue.Filter{}, queue.Page{})
		if _, partial := errors.AsType[*queue.PartialError](err); partial || !errors.Is(err, context.Canceled) {
			t.Errorf("a call that the caller has ended: %v", err)
		}
	})
}

// muted is a store whose lists are not answered while it is away.
type muted struct {
	queue.Store
	away *atomic.Bool
}

func (m muted) Find(ctx context.Context, f queue.Filter, p queue.Page) ([]queue.Task, error) {
	if m.away.Load() {
		return silent{}.Find(ctx, f, p)
	}
	return m.Store.Find(ctx, f, p)
}

func (m muted) Settings(ctx context.Context) (map[string]queue.Configured, error) {
	if m.away.Load() {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return m.Store.Settings(ctx)
}

func (m muted) Schedules(ctx context.Context) ([]queue.ScheduleState, error) {
	if m.away.Load() {
		return silent{}.Schedules(ctx)
	}
	return m.Store.Schedules(ctx)
}

// unwatched is a store whose watch hangs, or fails if hangs is false, until a channel is closed.
type unwatched struct {
	queue.Store
	hangs bool
	back  chan struct{}
}

func (u unwatched) Watch(ctx context.Context, begun func(), fn func(queue.Event)) error {
	select {
	case <-u.back:
		return u.Store.Watch(ctx, begun, fn)
	default:
	}
	if u.hangs {
		select {
		case <-u.back:
		case <-ctx.Done():
		}
	}
	return fmt.Errorf("%w: it is away", queue.ErrUnavailable)
}

// TestC11_SilentGroupAndWatch: a watch begins without a group that does not answer, and ends when the
// group answers again.
func TestC11_SilentGroupAndWatch(t *testing.T) {
	for _, hangs := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p, back := newPair(t), make(chan struct{})
			s := router.New(table(t, "mail=news", "rest"), []queue.Store{unwatched{p.mail, hangs, back}, p.rest})
			begun, events, ended := false, 0, make(chan error, 1)
			go func() {
				ended <- s.Watch(t.Context(), func() { begun = true }, func(queue.Event) { events++ })
			}()
			time.Sleep(4 * time.Second)
			if synctest.Wait(); !begun {
				t.Fatal("the watch does not begin without the silent group")
			}
			p.submit(t, "files")
			if synctest.Wait(); events != 1 {
				t.Errorf("%d events of the group that answers", events)
			}
			close(back)
			time.Sleep(4 * time.Second)
			synctest.Wait()
			select {
			case err := <-ended:
				if !errors.Is(err, queue.ErrUnavailable) || !strings.Contains(err.Error(), "group mail answers again") {
					t.Errorf("the watch ends with %v", err)
				}
			default:
				t.Error("the watch does not end when the group answers again")
			}
		})
	}
}

// TestC11_SilentGroupsAndWatch: without a group that answers, a watch does not begin.
func TestC11_SilentGroupsAndWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		s := router.New(table(t, "mail=news", "rest"), []queue.Store{unwatched{Store: p.mail}, unwatched{Store: p.rest}})
		err := s.Watch(t.Context(), func() { t.Error("it begins") }, func(queue.Event) { t.Error("an event") })
		if !errors.Is(err, queue.ErrUnavailable) || !strings.Contains(err.Error(), "it is away") {
			t.Errorf("the watch ends with %v", err)
		}
	})
}

// TestC11_GroupsTables: a table that does not say for each queue where it belongs is refused.
func TestC11_GroupsTables(t *testing.T) {
	for _, groups := range [][]string{
		nil, {"a=x"}, {"a", "b"}, {"a=x", "b=x", "c"}, {"a=x", "a=y", "c"}, {"=x", "c"}, {"a=default", "b=default", "c"},
	} {
		if _, err := tableOf(groups...); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("%q: %v", groups, err)
		}
	}
}

// TestC11_OnlyGroup: the leader of a group refuses the queues of others, and a group with
// unfinished tasks of such a queue is found.
func TestC11_OnlyGroup(t *testing.T) {
	p := newPair(t)
	former := table(t, "mail=news", "rest")
	g := router.OnlyGroup(p.mail, former, 0, nil)
	calls := map[string]func(name string) error{
		"submit": func(name string) error {
			_, err := g.Submit(t.Context(), start, []queue.NewTask{p.task(name)})
			return err
		},
		"claim": func(name string) error {
			_, err := g.Claim(t.Context(), start, queue.Claim{Worker: "w", Queue: name, Max: 1, Lease: time.Minute})
			return err
		},
		"configure": func(name string) error {
			return g.Configure(t.Context(), start, name, queue.Change{Set: queue.Settings{Max: 1}})
		},
		"pause": func(name string) error { return g.PauseQueue(t.Context(), start, name, nil) },
		"reschedule": func(name string) error {
			to := &queue.ScheduleState{Schedule: queue.Schedule{
				Name: "s", Cron: "@daily", Task: queue.Spec{Kind: "work", Options: queue.Options{Queue: name}},
			}, Version: p.ids.New(start)}
			return g.Reschedule(t.Context(), start, queue.Reschedule{Name: "s", To: to})
		},
	}
	for name, call := range calls {
		if err := call("files"); !errors.Is(err, queue.ErrInvalid) || !strings.Contains(err.Error(), "same groups") {
			t.Errorf("%s of another group: %v", name, err)
		}
		if err := call("news"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	next := router.New(table(t, "mail=letters", "rest"), []queue.Store{p.mail, p.rest})
	for group, foreign := range []bool{true, false} {
		if err := next.Foreign(t.Context(), start, group); errors.Is(err, queue.ErrInvalid) != foreign {
			t.Errorf("group %d: %v", group, err)
		}
	}
}
