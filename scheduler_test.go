package stint_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
)

// These tests run in bubbles of testing/synctest. A goroutine that is still
// there when a bubble ends is a failure, so none of them can leak one unseen.

var errAsked = errors.New("asked to stop")

// claim is a goroutine that called Acquire. It is read after synctest.Wait,
// when the goroutine has its answer or can go no further.
type claim struct {
	over   bool
	err    error
	permit stint.Permit // once it holds a slot
}

func (c *claim) waits() bool { return !c.over }
func (c *claim) holds() bool { return c.over && c.err == nil }

// claimSlot calls Acquire in a goroutine and lets everything settle.
func claimSlot(ctx context.Context, s stint.Scheduler) *claim {
	c := new(claim)
	go func() {
		c.permit, c.err = s.Acquire(ctx)
		c.over = true
	}()
	synctest.Wait()
	return c
}

// wantAllFree checks that nothing runs or waits and that every slot can be had.
func wantAllFree(t *testing.T, s stint.Scheduler) {
	t.Helper()
	synctest.Wait()
	checkAllFree(t, s)
}

// checkAllFree is wantAllFree for tests outside a bubble, once all is over.
func checkAllFree(t *testing.T, s stint.Scheduler) {
	t.Helper()
	st := s.Stats()
	if st.Running != 0 || st.Queued != 0 || st.Blocked != 0 {
		t.Errorf("%d run, %d are queued, %d are blocked; want none", st.Running, st.Queued, st.Blocked)
		return
	}
	highest := s.At(stint.Highest)
	all := takeSlots(t, highest, st.Limit)
	if _, ok := highest.TryAcquire(t.Context()); ok {
		t.Errorf("more than %d slots can be taken", st.Limit)
	}
	all.release()
}

func wantCounts(t *testing.T, s stint.Scheduler, running, queued int) {
	t.Helper()
	synctest.Wait()
	if st := s.Stats(); st.Running != running || st.Queued != queued {
		t.Fatalf("%d run and %d are queued, want %d and %d", st.Running, st.Queued, running, queued)
	}
}

func mustPanic(t *testing.T, what string, fn func()) {
	t.Helper()
	if panicOf(fn) == nil {
		t.Errorf("%s did not panic", what)
	}
}

// panicOf returns what fn panics with, or nil.
func panicOf(fn func()) (value any) {
	defer func() { value = recover() }()
	fn()
	return nil
}

// form is a way to have work done on a slot: do calls fn while it has one, and
// returns what became of that.
type form struct {
	name string
	do   func(ctx context.Context, s stint.Scheduler, fn func(context.Context) error) error
}

// forms is every form. Those that return before the work is done are waited
// for without the context, so that the answer is the scheduler's own.
var forms = []form{
	{"Acquire", func(ctx context.Context, s stint.Scheduler, fn func(context.Context) error) error {
		p, err := s.Acquire(ctx)
		if err != nil {
			return err
		}
		defer p.Release()
		return fn(ctx)
	}},
	{"Run", func(ctx context.Context, s stint.Scheduler, fn func(context.Context) error) error {
		_, err := stint.Run(ctx, s, valued(fn))
		return err
	}},
	{"RunWith", func(ctx context.Context, s stint.Scheduler, fn func(context.Context) error) error {
		call := func(ctx context.Context, fn func(context.Context) error) (int, error) { return 0, fn(ctx) }
		_, err := stint.RunWith(ctx, s, call, fn)
		return err
	}},
	{"Go", func(ctx context.Context, s stint.Scheduler, fn func(context.Context) error) error {
		_, err := stint.Go(ctx, s, valued(fn)).Wait(context.WithoutCancel(ctx))
		return err
	}},
	{"GoWith", func(ctx context.Context, s stint.Scheduler, fn func(context.Context) error) error {
		call := func(ctx context.Context, fn func(context.Context) error) (int, error) { return 0, fn(ctx) }
		_, err := stint.GoWith(ctx, s, call, fn).Wait(context.WithoutCancel(ctx))
		return err
	}},
	{"Group", func(ctx context.Context, s stint.Scheduler, fn func(context.Context) error) error {
		g := stint.NewGroup(ctx, s)
		g.Go(fn)
		return g.Wait()
	}},
}

// nesting is the forms that give their function a context with which it can do
// more on its slot.
var nesting = forms[1:]

// valued makes a function that has a value of one that has none.
func valued(fn func(context.Context) error) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) { return 0, fn(ctx) }
}

// journal is what happened, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) want(t *testing.T, want ...string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.Equal(j.lines, want) {
		t.Errorf("got  %q,\nwant %q", j.lines, want)
	}
}

// gauge counts how many are inside at once.
type gauge struct {
	mu           sync.Mutex
	inside, most int
}

func (g *gauge) enter() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside++
	g.most = max(g.most, g.inside)
}

func (g *gauge) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
}

func TestA1_ValueOrErrorOfTheFunction(t *testing.T) {
	s := stint.New(1, stint.Config{})
	value := func(context.Context) (string, error) { return "done", nil }
	partly := func(context.Context) (string, error) { return "half", errAsked }
	if v, err := stint.Run(t.Context(), s, value); v != "done" || err != nil {
		t.Errorf("Run = %q, %v", v, err)
	}
	if v, err := stint.Run(t.Context(), s, partly); v != "half" || !errors.Is(err, errAsked) {
		t.Errorf("Run = %q, %v; want the value with the error", v, err)
	}
	if v, err := stint.Go(t.Context(), s, value).Wait(t.Context()); v != "done" || err != nil {
		t.Errorf("Go = %q, %v", v, err)
	}
	if v, err := stint.Go(t.Context(), s, partly).Wait(t.Context()); v != "half" || !errors.Is(err, errAsked) {
		t.Errorf("Go = %q, %v; want the value with the error", v, err)
	}
}

// Whatever the form: no more than the limit are inside, and no slot is idle
// while a caller waits, so that the whole takes exactly as long as it must.
func TestA1_AtMostMaxRunAndNoSlotIsIdle(t *testing.T) {
	const limit, calls = 7, 50
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(limit, stint.Config{})
				var inside gauge
				var wg sync.WaitGroup
				began := time.Now()
				for range calls {
					wg.Go(func() {
						err := f.do(t.Context(), s, func(context.Context) error {
							inside.enter()
							defer inside.leave()
							time.Sleep(time.Second)
							return nil
						})
						if err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				if inside.most != limit {
					t.Errorf("at most %d were inside at once, want %d", inside.most, limit)
				}
				if took, want := time.Since(began), 8*time.Second; took != want {
					t.Errorf("took %v, want %v", took, want)
				}
				wantAllFree(t, s)
			})
		})
	}
}

func TestA1_ContextReachesTheFunction(t *testing.T) {
	type name struct{}
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := context.WithValue(t.Context(), name{}, "caller")
				deadline := time.Now().Add(time.Hour)
				ctx, cancel := context.WithDeadline(ctx, deadline)
				defer cancel()
				err := f.do(stint.WithPriority(ctx, stint.Low), stint.New(1, stint.Config{}), func(ctx context.Context) error {
					if got, ok := ctx.Deadline(); !ok || !got.Equal(deadline) {
						t.Errorf("deadline is %v, want %v", got, deadline)
					}
					if got := ctx.Value(name{}); got != "caller" {
						t.Errorf("value is %v", got)
					}
					if got := stint.PriorityFrom(ctx); got != stint.Low {
						t.Errorf("priority is %v, want low", got)
					}
					return ctx.Err()
				})
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// All forms wait in one FIFO.
func TestA2_FIFOOverAllForms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		permit := mustTry(t, s)
		var started journal
		var want []string
		var wg sync.WaitGroup
		for i := range 4 * len(forms) {
			f := forms[i%len(forms)]
			want = append(want, fmt.Sprint(i))
			wg.Go(func() {
				_ = f.do(t.Context(), s, func(context.Context) error {
					started.add("%d", i)
					return nil
				})
			})
			synctest.Wait()
		}
		permit.Release()
		wg.Wait()
		started.want(t, want...)
		wantAllFree(t, s)
	})
}

func TestA2_FIFOWithinTierAndKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		permit := mustTry(t, s)
		lines := map[string]*journal{}
		for i := range 300 {
			tier := stint.Priority(i*i%7) + stint.Lowest
			key := []string{"", "a", "b"}[i%3]
			line := tier.String() + "/" + key
			if lines[line] == nil {
				lines[line] = new(journal)
			}
			order := lines[line]
			stint.Go(t.Context(), s.At(tier).Key(key), func(context.Context) (int, error) {
				order.add("%03d", i)
				return i, nil
			})
		}
		releaseSlot(permit)
		for line, order := range lines {
			if len(order.lines) == 0 || !slices.IsSorted(order.lines) {
				t.Errorf("%s started in the order %v", line, order.lines)
			}
		}
		wantAllFree(t, s)
	})
}

// A released slot is handed to the waiter, so no arrival in between can take it.
func TestA2_ReleasedSlotIsHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		permit := mustTry(t, s)
		waiter := claimSlot(t.Context(), s)
		permit.Release()
		for _, view := range []stint.Scheduler{s, s.At(stint.Highest)} {
			if _, ok := view.TryAcquire(t.Context()); ok {
				t.Fatal("an arrival took the slot that was handed over")
			}
		}
		synctest.Wait()
		if !waiter.holds() {
			t.Fatal("the waiter was passed over")
		}
		waiter.permit.Release()
		wantAllFree(t, s)
	})
}

func panicker() { panic(errAsked) }

func TestA3_PanicIsAnErrorWithTheStack(t *testing.T) {
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(1, stint.Config{})
				if f.name == "Acquire" {
					mustPanic(t, "the function", func() {
						_ = f.do(t.Context(), s, func(context.Context) error { panicker(); return nil })
					})
					wantAllFree(t, s) // by the caller's own defer
					return
				}
				err := f.do(t.Context(), s, func(context.Context) error { panicker(); return nil })
				var p *stint.PanicError
				if !errors.As(err, &p) {
					t.Fatalf("error is %v, want a PanicError", err)
				}
				if p.Value != any(errAsked) || !errors.Is(err, errAsked) {
					t.Errorf("the panic's value is %v, want %v", p.Value, errAsked)
				}
				if !strings.Contains(string(p.Stack), "stint_test.panicker") {
					t.Errorf("the stack does not show the function that panicked:\n%s", p.Stack)
				}
				if text := err.Error(); !strings.Contains(text, errAsked.Error()) || !strings.Contains(text, "panicker") {
					t.Errorf("the error's text lacks the value or the stack: %s", text)
				}
				wantAllFree(t, s)
			})
		})
	}
}

func TestA3_PanicWithoutAnErrorValue(t *testing.T) {
	s := stint.New(1, stint.Config{})
	_, err := stint.Run(t.Context(), s, func(context.Context) (int, error) { panic("no error") })
	var p *stint.PanicError
	if !errors.As(err, &p) || p.Value != any("no error") || errors.Unwrap(err) != nil {
		t.Errorf("error is %v", err)
	}
}

// A function that ends its goroutine releases its slot, and the goroutine's
// other work goes on elsewhere.
func TestA3_GoexitReleasesTheSlot(t *testing.T) {
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(1, stint.Config{})
				permit := mustTry(t, s)
				var answer error
				returned := false
				go func() {
					answer = f.do(t.Context(), s, func(context.Context) error { runtime.Goexit(); return nil })
					returned = true
				}()
				synctest.Wait()
				var after []*stint.Future[int]
				for range 3 {
					after = append(after, stint.Go(t.Context(), s, valued(func(context.Context) error { return nil })))
				}
				permit.Release()
				synctest.Wait()
				switch inCaller := f.name != "Go" && f.name != "GoWith" && f.name != "Group"; {
				case inCaller && returned:
					t.Errorf("the caller's goroutine went on with %v", answer)
				case !inCaller && !errors.Is(answer, stint.ErrGoexit):
					t.Errorf("error is %v, want ErrGoexit", answer)
				}
				for i, f := range after {
					if _, err := f.Wait(t.Context()); err != nil {
						t.Errorf("function %d after it: %v", i, err)
					}
				}
				wantAllFree(t, s)
			})
		})
	}
}
