package stint_test

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint"
)

// mapper is Map or MapUnordered, for tests of what they have in common.
type mapper func(
	context.Context, stint.Scheduler, iter.Seq[int], func(context.Context, int) (int, error),
) iter.Seq2[int, error]

// mapTrial is a test of one of the two.
type mapTrial struct {
	*testing.T

	over mapper
}

// eachMap runs a test in a bubble for Map and for MapUnordered.
func eachMap(t *testing.T, test func(mapTrial)) {
	t.Helper()
	t.Run("Map", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(mapTrial{t, stint.Map[int, int]}) })
	})
	t.Run("MapUnordered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(mapTrial{t, stint.MapUnordered[int, int]}) })
	})
}

// naturals are 0, 1, 2 … without end.
func naturals(yield func(int) bool) {
	for i := 0; yield(i); i++ {
	}
}

// upTo is 0 … n-1.
func upTo(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := 0; i < n && yield(i); i++ {
		}
	}
}

// counted counts in taken what is taken of a sequence.
func counted(seq iter.Seq[int], taken *atomic.Int64) iter.Seq[int] {
	return func(yield func(int) bool) {
		for v := range seq {
			taken.Add(1)
			if !yield(v) {
				return
			}
		}
	}
}

func twice(_ context.Context, n int) (int, error) { return 2 * n, nil }

func TestA9_MapYieldsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(4, stint.Config{})
		const n = 8 // one window
		var gates [n]chan struct{}
		for i := range gates {
			gates[i] = make(chan struct{})
		}
		// The calls of a batch of four end in reverse order.
		ends := func(_ context.Context, i int) (int, error) {
			if i%4 < 3 {
				<-gates[i+1]
			}
			close(gates[i])
			return 2 * i, nil
		}
		want := 0
		for v, err := range stint.Map(t.Context(), s, upTo(n), ends) {
			if v != 2*want || err != nil {
				t.Errorf("outcome %d is %d, %v", want, v, err)
			}
			want++
		}
		if want != n {
			t.Errorf("%d outcomes of %d", want, n)
		}
		atRest(t, s)
	})
}

func TestA9_MapUnorderedYieldsAsCompleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(4, stint.Config{})
		var gates [4]chan struct{}
		for i := range gates {
			gates[i] = make(chan struct{})
		}
		ends := func(_ context.Context, i int) (int, error) {
			<-gates[i]
			return i, nil
		}
		order := []int{2, 0, 3, 1}
		close(gates[order[0]])
		var got []int
		for v, err := range stint.MapUnordered(t.Context(), s, upTo(4), ends) {
			if got = append(got, v); err != nil {
				t.Errorf("outcome of %d: %v", v, err)
			}
			if len(got) == 1 { // the others end while the consumer is busy
				for _, i := range order[1:] {
					close(gates[i])
					synctest.Wait()
				}
			}
		}
		if !slices.Equal(got, order) {
			t.Errorf("yielded %v, want %v as they ended", got, order)
		}
		atRest(t, s)
	})
}

func TestA9_EveryInputHasOneOutcome(t *testing.T) {
	eachMap(t, func(t mapTrial) {
		for _, limit := range []int{1, 2, 7} {
			s := stint.New(limit, stint.Config{})
			var running atomic.Int32
			seen := map[int]int{}
			for v, err := range t.over(t.Context(), s, upTo(500), func(_ context.Context, n int) (int, error) {
				defer running.Add(-1)
				if r := running.Add(1); int(r) > limit {
					t.Errorf("%d run at once, limit %d", r, limit)
				}
				if n%3 == 0 {
					return n, errBoom
				}
				return n, nil
			}) {
				if seen[v]++; (err != nil) != (v%3 == 0) {
					t.Errorf("outcome of %d: %v", v, err)
				}
			}
			if got := slices.Sorted(maps.Keys(seen)); len(got) != 500 || got[499] != 499 {
				t.Errorf("limit %d: %d inputs have an outcome, want 500", limit, len(got))
			}
			atRest(t, s)
		}
	})
}

func TestA9_NoInputs(t *testing.T) {
	eachMap(t, func(t mapTrial) {
		s := stint.New(1, stint.Config{})
		for v, err := range t.over(t.Context(), s, upTo(0), twice) {
			t.Errorf("an outcome of no input: %d, %v", v, err)
		}
	})
}

// However slow the calls or the consumer are, never more than two inputs for
// each slot are in flight: taken, but their outcomes not yielded.
func TestA9_LookAheadIsBounded(t *testing.T) {
	eachMap(t, func(t mapTrial) {
		for _, limit := range []int{1, 3, 10} {
			s := stint.New(limit, stint.Config{})
			var yielded atomic.Int64
			most := int64(0)
			watched := func(yield func(int) bool) {
				for i := range naturals {
					if most = max(most, int64(i+1)-yielded.Load()); !yield(i) {
						return
					}
				}
			}
			for _, err := range t.over(t.Context(), s, watched, twice) {
				synctest.Wait() // a slow consumer: every call ends
				if yielded.Add(1) == 100 || err != nil {
					break
				}
			}
			synctest.Wait()
			if most > int64(2*limit) {
				t.Errorf("limit %d: %d inputs were in flight, want at most %d", limit, most, 2*limit)
			}
			atRest(t, s)
		}
	})
}

// The look-ahead of the largest limit is no less than that, also where an int has 32 bits.
func TestA9_LookAheadOfTheLargestLimit(t *testing.T) {
	eachMap(t, func(t mapTrial) {
		s := stint.New(stint.MaxSlots, stint.Config{})
		n := 0
		for v, err := range t.over(t.Context(), s, upTo(3), func(_ context.Context, v int) (int, error) { return v, nil }) {
			if n++; err != nil {
				t.Errorf("outcome %d, %v", v, err)
			}
		}
		if n != 3 {
			t.Errorf("%d outcomes, want 3", n)
		}
	})
}

// With calls that do not end, the look-ahead is used in full.
func TestA9_LookAheadKeepsSlotsBusy(t *testing.T) {
	eachMap(t, func(t mapTrial) {
		s := stint.New(3, stint.Config{})
		gate := make(chan struct{})
		var taken atomic.Int64
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for _, err := range t.over(t.Context(), s, counted(upTo(100), &taken), func(context.Context, int) (int, error) {
				<-gate
				return 0, nil
			}) {
				if err != nil {
					t.Errorf("outcome: %v", err)
				}
			}
		}()
		synctest.Wait()
		if st := s.Stats(); taken.Load() != 6 || st.Running != 3 || st.Queued != 3 {
			t.Errorf("%d taken, %d run, %d queued; want 6, 3, 3", taken.Load(), st.Running, st.Queued)
		}
		close(gate)
		<-ended
		if n := taken.Load(); n != 100 {
			t.Errorf("%d of 100 inputs taken", n)
		}
	})
}

func TestA9_BreakCancelsAndWaits(t *testing.T) {
	eachMap(t, func(t mapTrial) {
		s := stint.New(3, stint.Config{})
		var ended, called atomic.Int32
		var taken atomic.Int64
		for v, err := range t.over(t.Context(), s, counted(naturals, &taken),
			func(ctx context.Context, n int) (int, error) {
				called.Add(1)
				if n == 0 {
					return 0, nil
				}
				<-ctx.Done()
				ended.Add(1)
				return 0, context.Cause(ctx)
			}) {
			if v != 0 || err != nil {
				t.Errorf("first outcome: %d, %v", v, err)
			}
			synctest.Wait()
			break
		}
		if c, e := called.Load(), ended.Load(); c != e+1 {
			t.Errorf("%d calls begun, %d of those in flight ended before the range did", c, e)
		}
		if n := taken.Load(); n > 7 {
			t.Errorf("%d inputs taken for one outcome", n)
		}
		atRest(t, s)
	})
}

func TestA9_EndOfContext(t *testing.T) {
	eachMap(t, func(t mapTrial) {
		s := stint.New(2, stint.Config{})
		ctx, cancel := context.WithCancelCause(t.Context())
		var taken atomic.Int64
		outcomes, failed := 0, 0
		go func() {
			synctest.Wait()
			cancel(errBoom)
		}()
		for _, err := range t.over(ctx, s, counted(naturals, &taken), untilDoneFor) {
			outcomes++
			if err == errBoom { //nolint:errorlint // the very error
				failed++
			}
		}
		if n := int(taken.Load()); n > 5 || outcomes != n+1 || failed != n+1 {
			t.Errorf("%d taken, %d outcomes, %d with the cause; want at most 5, and one more each", n, outcomes, failed)
		}
		atRest(t, s)
	})
}

func untilDoneFor(ctx context.Context, _ int) (int, error) { return untilDone(ctx) }

// A range that its context cuts short ends with the cause, also if everything that it
// had taken has been yielded, and no input vanishes.
func TestA9_EndOfContextIsYielded(t *testing.T) {
	eachMap(t, func(t mapTrial) {
		for _, at := range []int{0, 1, 5} {
			s := stint.New(2, stint.Config{})
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			var taken atomic.Int64
			outcomes := 0
			var last error
			if at == 0 {
				cancel(errBoom)
			}
			for _, err := range t.over(ctx, s, counted(naturals, &taken), func(context.Context, int) (int, error) {
				return 0, nil
			}) {
				last = err
				if outcomes++; outcomes == at {
					synctest.Wait()
					cancel(errBoom)
				}
			}
			if n := int(taken.Load()); last != errBoom || outcomes != n+1 { //nolint:errorlint // the very error
				t.Errorf("cut short after %d: %d taken, %d outcomes, the last with %v", at, n, outcomes, last)
			}
			atRest(t, s)
		}
	})
}

func TestA9_PanicInTheFunction(t *testing.T) {
	eachMap(t, func(t mapTrial) {
		s := stint.New(2, stint.Config{})
		panics, exited, values := 0, 0, 0
		for _, err := range t.over(t.Context(), s, upTo(30), func(ctx context.Context, n int) (int, error) {
			switch n % 3 {
			case 0:
				return panicsInside(ctx)
			case 1:
				return exits(ctx)
			}
			return n, nil
		}) {
			var panicked *stint.PanicError
			switch {
			case errors.As(err, &panicked) && errors.Is(err, errBoom):
				panics++
			case errors.Is(err, stint.ErrGoexit):
				exited++
			case err == nil:
				values++
			}
		}
		if panics != 10 || exited != 10 || values != 10 {
			t.Errorf("%d panics, %d exits, %d values; want 10 of each", panics, exited, values)
		}
		atRest(t, s)
	})
}

// A panic in the inputs, or in the body of the range, goes on where it is, when
// the calls in flight have ended.
func TestA9_PanicInTheRange(t *testing.T) {
	eachMap(t, func(t mapTrial) {
		for _, c := range []struct {
			where  string
			inputs iter.Seq[int]
			body   func()
		}{
			{"inputs", func(yield func(int) bool) {
				if yield(0) && yield(1) && yield(2) {
					synctest.Wait()
					panic(errBoom)
				}
			}, func() {}},
			{"body", upTo(3), func() {
				synctest.Wait()
				panic(errBoom)
			}},
		} {
			s := stint.New(2, stint.Config{})
			var begun, ended atomic.Int32
			another := make(chan struct{}) // call has begun besides the one that is yielded
			begin := sync.OnceFunc(func() { close(another) })
			func() {
				defer func() {
					if err, _ := recover().(error); !errors.Is(err, errBoom) {
						t.Errorf("panic in the %s: the range panicked with %v, want boom", c.where, err)
					}
					if b, e := begun.Load(), ended.Load(); b != e || b == 0 {
						t.Errorf("panic in the %s: %d calls begun, %d ended before it went on", c.where, b, e)
					}
				}()
				for _, err := range t.over(t.Context(), s, c.inputs, func(ctx context.Context, n int) (int, error) {
					if n == 0 {
						<-another
						return 0, nil
					}
					begun.Add(1)
					begin()
					<-ctx.Done()
					ended.Add(1)
					return 0, nil
				}) {
					if c.body(); err != nil {
						t.Errorf("outcome: %v", err)
					}
				}
			}()
			atRest(t, s)
		}
	})
}

func TestA4_MapInsideAFunction(t *testing.T) {
	eachMap(t, func(t mapTrial) {
		s := stint.New(1, stint.Config{})
		sum := func(ctx context.Context, n int) (int, error) {
			total := 0
			for v, err := range t.over(ctx, s, upTo(n), twice) {
				if total += v; err != nil {
					return 0, err
				}
			}
			return total, nil
		}
		total := 0
		for v, err := range t.over(t.Context(), s, upTo(20), sum) { // a Map in a Map
			if total += v; err != nil {
				t.Errorf("outcome: %v", err)
			}
		}
		if total != 2280 {
			t.Errorf("the sum is %d, want 2280", total)
		}
		v, err := stint.Run(t.Context(), s, func(ctx context.Context) (int, error) { return sum(ctx, 10) })
		if v != 90 || err != nil {
			t.Errorf("inside Run: %d, %v", v, err)
		}
		atRest(t, s)
	})
}

// A range that waits for nothing does not suspend its slot: it would have to wait
// for another one.
func TestA4_MapSuspendsItsSlotOnlyWhileItWaits(t *testing.T) {
	eachMap(t, func(t mapTrial) {
		s := stint.New(1, stint.Config{})
		_, _ = stint.Run(t.Context(), s, func(ctx context.Context) (int, error) {
			other := stint.Go(t.Context(), s, value(1))
			for v, err := range t.over(ctx, s, upTo(0), twice) {
				t.Errorf("an outcome of no input: %d, %v", v, err)
			}
			synctest.Wait()
			if settled(other) {
				t.Error("a range over nothing gave its slot away")
			}
			return 0, nil
		})
		atRest(t, s)
	})
}

// A range computes on its slot while its inputs wait for room in a bounded queue.
func TestA4_MapKeepsItsSlotWhileAnInputWaitsForRoom(t *testing.T) {
	eachMap(t, func(t mapTrial) {
		s := stint.New(2, stint.Config{Queue: 1})
		computes, end := make(chan struct{}), make(chan struct{})
		inputs := func(yield func(int) bool) { // all but the first while the body computes
			more := yield(0)
			<-computes
			for n := 1; n < 4 && more; n++ {
				more = yield(n)
			}
		}
		var running atomic.Int32
		fn := func(_ context.Context, n int) (int, error) {
			running.Add(1)
			defer running.Add(-1)
			if n > 0 {
				<-end
			}
			return n, nil
		}
		_, _ = stint.Run(t.Context(), s, func(ctx context.Context) (int, error) {
			for n, err := range t.over(ctx, s, inputs, fn) {
				if err != nil {
					t.Errorf("input %d: %v", n, err)
				}
				if n > 0 {
					continue
				}
				close(computes)
				synctest.Wait() // input 1 runs, 2 is queued, 3 waits for room
				stats := s.Stats()
				if stats.Blocked != 1 || stats.Suspended != 0 || running.Load() != 1 {
					t.Errorf("%d calls run beside the range, %d are suspended, %d blocked; want 1, 0, 1",
						running.Load(), stats.Suspended, stats.Blocked)
				}
				close(end)
			}
			return 0, nil
		})
		atRest(t, s)
	})
}

func TestA9_ResizeInTheRange(t *testing.T) {
	eachMap(t, func(t mapTrial) {
		s := stint.New(8, stint.Config{})
		var taken atomic.Int64
		yielded := 0
		for _, err := range t.over(t.Context(), s, counted(upTo(400), &taken), twice) {
			if err != nil {
				t.Fatalf("outcome %d: %v", yielded, err)
			}
			yielded++
			limit := 1 + yielded%9
			s.Resize(limit)
			if ahead := int(taken.Load()) - yielded; ahead > 18 {
				t.Errorf("%d inputs in flight", ahead)
			}
		}
		if yielded != 400 {
			t.Errorf("%d of 400 outcomes", yielded)
		}
		s.Resize(0)
		for _, err := range t.over(t.Context(), s, upTo(3), twice) {
			if !errors.Is(err, stint.ErrNoCapacity) {
				t.Errorf("under a limit of 0: %v", err)
			}
		}
		s.Resize(1)
		atRest(t, s)
	})
}

// A range whose look-ahead is used up takes more inputs as soon as the limit is raised, though no call
// ends.
func TestA9_ResizeWhileTheLookAheadIsFull(t *testing.T) {
	eachMap(t, func(t mapTrial) {
		s := stint.New(1, stint.Config{})
		var taken atomic.Int64
		end := make(chan struct{})
		over := make(chan struct{})
		go func() {
			defer close(over)
			waits := func(_ context.Context, n int) (int, error) { <-end; return n, nil }
			for _, err := range t.over(t.Context(), s, counted(upTo(20), &taken), waits) {
				if err != nil {
					t.Error(err)
				}
			}
		}()
		most := 0
		for _, limit := range []int{1, 2, 5, 3, 7} {
			s.Resize(limit)
			synctest.Wait()
			most = max(most, 2*limit)
			if got := int(taken.Load()); got != most {
				t.Errorf("under a limit of %d, %d inputs are taken, want %d", limit, got, most)
			}
		}
		close(end)
		<-over
		if taken.Load() != 20 {
			t.Errorf("%d of 20 inputs taken", taken.Load())
		}
		atRest(t, s)
	})
}

func TestA9_ClosedScheduler(t *testing.T) {
	eachMap(t, func(t mapTrial) {
		s := stint.New(2, stint.Config{})
		outcomes, taken := 0, 0
		inputs := func(yield func(int) bool) {
			for taken = 1; yield(taken - 1); { // without end
				taken++
			}
		}
		for _, err := range t.over(t.Context(), s, inputs, onlyZeroReturns) {
			if outcomes == 0 {
				s.Close()
			} else if !errors.Is(err, stint.ErrClosed) {
				t.Errorf("outcome %d of a closed scheduler: %v", outcomes, err)
			}
			outcomes++
		}
		synctest.Wait()
		if outcomes < 2 || outcomes != taken || taken > 6 { // two in flight for each slot, and what was refused
			t.Errorf("%d outcomes of %d inputs that were taken", outcomes, taken)
		}
		outcomes = 0
		for _, err := range t.over(t.Context(), s, upTo(3), twice) {
			if outcomes++; !errors.Is(err, stint.ErrClosed) {
				t.Errorf("closed before the range: %v", err)
			}
		}
		if outcomes != 1 {
			t.Errorf("%d outcomes of a range that began when it was closed, want 1", outcomes)
		}
		atRest(t, s)
	})
}

// onlyZeroReturns returns at once for the first input only.
func onlyZeroReturns(ctx context.Context, n int) (int, error) {
	if n == 0 {
		return 0, nil
	}
	return untilDone(ctx)
}

// A bounded queue narrows the look-ahead further, or refuses what it has no
// room for.
func TestA9_BoundedQueue(t *testing.T) {
	eachMap(t, func(t mapTrial) {
		blocks := stint.New(4, stint.Config{Queue: 1})
		n := 0
		for _, err := range t.over(t.Context(), blocks, upTo(100), func(_ context.Context, n int) (int, error) {
			if q := blocks.Stats().Queued; q > 1 {
				t.Errorf("%d queued, bound 1", q)
			}
			return n, nil
		}) {
			if n++; err != nil {
				t.Errorf("outcome: %v", err)
			}
		}
		if n != 100 {
			t.Errorf("%d of 100 outcomes", n)
		}
		atRest(t, blocks)

		refuses := stint.New(1, stint.Config{Queue: 1, WhenFull: stint.Refuse})
		permit := mustAcquire(t, refuses)
		var taken atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		refused := 0
		go func() {
			synctest.Wait()
			cancel()
		}()
		for _, err := range t.over(ctx, refuses, counted(upTo(2), &taken), twice) {
			if errors.Is(err, stint.ErrQueueFull) {
				refused++
			}
		}
		if refused != 1 || taken.Load() != 2 {
			t.Errorf("%d of %d refused, want 1 of 2", refused, taken.Load())
		}
		permit.Release()
		atRest(t, refuses)
	})
}
