package stint_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/slotstest"
)

// gated returns a function that ends when end is called.
func gated() (fn func(context.Context) (int, error), end func()) {
	gate := make(chan struct{})
	return func(context.Context) (int, error) {
		<-gate
		return 0, nil
	}, func() { close(gate) }
}

// Each job that was submitted takes room for one, also if nothing has looked at the queue
// since. The test does not look either: Stats would.
func TestA8_PostedJobsTakeRoom(t *testing.T) {
	const room = 100
	for _, when := range []stint.WhenFull{stint.Block, stint.Refuse} {
		synctest.Test(t, func(t *testing.T) {
			s := stint.New(1, stint.Config{Queue: room, WhenFull: when})
			permit := mustTry(t, s)
			for i := range room {
				if sub := submit(t.Context(), s, nothing); sub.blocked() || settled(sub.f) {
					t.Fatalf("job %d of %d did not find room", i+1, room)
				}
			}
			more := submit(t.Context(), s, nothing)
			if when == stint.Refuse {
				if err := more.answer(t); !errors.Is(err, stint.ErrQueueFull) {
					t.Errorf("error is %v, want ErrQueueFull", err)
				}
			} else if !more.blocked() {
				t.Error("a job more than there is room for was taken")
			}
			permit.Release()
			if when == stint.Block {
				_ = more.answer(t)
			}
			wantAllFree(t, s)
		})
	}
}

// When a queued job starts, there is room for one more.
func TestA8_RoomOfAPostedJobThatStarts(t *testing.T) {
	const room = 100
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{Queue: room})
		permit := mustTry(t, s)
		first, end := gated()
		submit(t.Context(), s, first)
		for range room - 1 {
			submit(t.Context(), s, nothing)
		}
		releaseSlot(permit)
		if submit(t.Context(), s, nothing).blocked() {
			t.Error("the room of the job that has started is still taken")
		}
		last := submit(t.Context(), s, nothing)
		if !last.blocked() {
			t.Error("there was room for two")
		}
		end()
		_ = last.answer(t)
		wantAllFree(t, s)
	})
}

// cappedQueue returns a scheduler of n slots, all taken, whose queue has one
// place, and the job that has it and cannot start while more than one slot is
// in use.
func cappedQueue(t *testing.T, n int) (stint.Scheduler, permits, *stint.Future[int]) {
	t.Helper()
	s := stint.New(n, stint.Config{Caps: stint.Caps{Low: 1}, Queue: 1})
	taken := takeSlots(t, s, n)
	low := stint.Go(t.Context(), s.At(stint.Low), nothing)
	wantCounts(t, s, n, 1)
	return s, taken, low
}

// runLow releases the last slot that is taken, for the job that [cappedQueue] queued.
func runLow(t *testing.T, s stint.Scheduler, last *stint.Permit, low *stint.Future[int]) {
	t.Helper()
	last.Release()
	_, _ = low.Wait(t.Context())
	wantAllFree(t, s)
}

// A submitter is admitted when a slot is free for its job, though the queue is full of a
// tier that may not start.
func TestA8_JobThatCanStartNeedsNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, permits, low := cappedQueue(t, 2)
		high := submit(t.Context(), s.At(stint.High), nothing)
		if !high.blocked() {
			t.Fatal("did not wait for room")
		}
		releaseSlot(permits[0])
		if err := high.answer(t); err != nil {
			t.Errorf("error is %v", err)
		}
		wantCounts(t, s, 1, 1)
		runLow(t, s, permits[1], low)
	})
}

// The same holds for a queue that is full of a key at its limit, where nothing queued
// waits for a slot.
func TestA8_JobThatCanStartNeedsNoRoomBesideAHeldKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(2, stint.Config{PerKey: 1, Queue: 1})
		body, end := gated()
		running := stint.Go(t.Context(), s.Key("a"), body)
		permit := mustTry(t, s)
		held := stint.Go(t.Context(), s.Key("a"), nothing)
		wantCounts(t, s, 2, 1)
		other := submit(t.Context(), s.Key("b"), nothing)
		if !other.blocked() {
			t.Fatal("did not wait for room")
		}
		releaseSlot(permit)
		if err := other.answer(t); err != nil {
			t.Errorf("error is %v", err)
		}
		end()
		_, _ = running.Wait(t.Context())
		_, _ = held.Wait(t.Context())
		wantAllFree(t, s)
	})
}

// One slot admits one submitter; the bound holds for the others.
func TestA8_OneFreeSlotAdmitsOneSubmitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, permits, _ := cappedQueue(t, 3)
		body, end := gated()
		high := submit(t.Context(), s.At(stint.High), body)
		normal := submit(t.Context(), s, nothing)
		releaseSlot(permits[0])
		if high.blocked() || !normal.blocked() {
			t.Errorf("blocked: high %t, normal %t; want the normal one", high.blocked(), normal.blocked())
		}
		wantCounts(t, s, 3, 1)
		end()
		if err := normal.answer(t); err != nil {
			t.Errorf("error is %v", err)
		}
		permits[1:].release()
		wantAllFree(t, s)
	})
}

// When a blocked submitter gives up, the next one is admitted if its job can start.
func TestA8_NextBlockedSubmitterStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, permits, _ := cappedQueue(t, 3)
		ctx, cancel := context.WithCancel(t.Context())
		heavy := submit(ctx, s.At(stint.High).Weight(2), nothing)
		light := submit(t.Context(), s, nothing)
		releaseSlot(permits[0])
		if !heavy.blocked() || !light.blocked() {
			t.Fatal("one slot was enough for the heavy one, or not for it to go first")
		}
		cancel()
		if err := light.answer(t); err != nil {
			t.Errorf("error is %v", err)
		}
		_ = heavy.answer(t)
		permits[1:].release()
		wantAllFree(t, s)
	})
}

// A function that submits to a full queue does not wait for room if its job may start on
// the slot that the function has suspended.
func TestA8_BlockedFunctionSuspendsItsSlotForItsJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, permits, low := cappedQueue(t, 2)
		permits[0].Release()
		_, err := stint.Run(t.Context(), s, func(ctx context.Context) (int, error) {
			return stint.Go(ctx, s, nothing).Wait(ctx)
		})
		if err != nil {
			t.Errorf("error is %v", err)
		}
		wantCounts(t, s, 1, 1)
		runLow(t, s, permits[1], low)
	})
}

// A pause also holds back submitters whose jobs need no room.
func TestA8_PauseHoldsBackBlockedSubmitters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, permits, low := cappedQueue(t, 2)
		high := submit(t.Context(), s.At(stint.High), nothing)
		s.Pause("the test")
		releaseSlot(permits[0])
		if !high.blocked() {
			t.Error("was let in, and waits in a queue that is full")
		}
		s.Resume()
		if err := high.answer(t); err != nil {
			t.Errorf("error is %v", err)
		}
		runLow(t, s, permits[1], low)
	})
}

// Jobs of submitters that are admitted together are queued in the order of admission,
// whichever submitter wakes first.
func TestA8_SubmittersAdmittedTogetherKeepTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 50
		s, permit := full(t, n, stint.Block)
		var started journal
		var want []string
		for i := range n {
			submit(t.Context(), s, func(context.Context) (int, error) {
				started.add("%d", i)
				return 0, nil
			})
			want = append(want, strconv.Itoa(i))
		}
		s.Clear()
		releaseSlot(permit)
		wantAllFree(t, s)
		started.want(t, want...)
	})
}

// The bound counts all jobs that wait.
func TestA8_RoomCountsEverythingThatWaits(t *testing.T) {
	const room = 100
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{Queue: room})
		permit := mustTry(t, s)
		first, endFirst := gated()
		urgent, endUrgent := gated()
		submit(t.Context(), s, first)
		for range room - 2 {
			submit(t.Context(), s, nothing)
		}
		releaseSlot(permit) // the first runs
		submit(t.Context(), s.At(stint.High), urgent)
		endFirst()
		synctest.Wait() // the urgent one runs, 98 wait
		taken := 0
		var last *submitter
		for last = submit(t.Context(), s, nothing); !last.blocked(); last = submit(t.Context(), s, nothing) {
			taken++
		}
		if taken != 2 {
			t.Errorf("%d were taken, there was room for 2", taken)
		}
		endUrgent()
		_ = last.answer(t)
		wantAllFree(t, s)
	})
}

// Whether a shared slot is free is known only once it is taken. So with shared slots no
// submitter is admitted without room.
func TestA8_SharedSlotsNeedRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _, _ := sharing(2, stint.Config{Queue: 1}, slotstest.NewPool(1))
		permit := mustTry(t, s)
		stint.Go(t.Context(), s, nothing)
		high := submit(t.Context(), s.At(stint.High), nothing)
		if !high.blocked() {
			t.Error("went in without room, and no slot was free")
		}
		wantCounts(t, s, 1, 1)
		permit.Release()
		if err := high.answer(t); err != nil {
			t.Errorf("error is %v", err)
		}
		wantCounts(t, s, 0, 0)
	})
}

// Submitters that a smaller limit refuses are not charged to their key: its next one is
// admitted as if they had not come.
func TestA8_RefusedSubmittersAreNotChargedToTheirKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(2, stint.Config{Queue: 1})
		permits := takeSlots(t, s, 2)
		stint.Go(t.Context(), s, nothing)
		var started journal
		add := func(name string) {
			submit(t.Context(), s.Key(name[:1]), func(context.Context) (int, error) {
				started.add("%s", name)
				return 0, nil
			})
		}
		add("b1")
		for range 3 {
			submit(t.Context(), s.Key("a").Weight(2), nothing)
		}
		s.Resize(1)
		add("b2")
		add("a1")
		permits.release()
		wantAllFree(t, s)
		started.want(t, "b1", "a1", "b2")
	})
}

// The room of a job that starts goes to a blocked submitter at once, also if the jobs that wait are
// many and alike, so that the next one is handed over without asking the policy.
func TestA8_RoomOfAJobThatIsHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const queue, blocked = 3, 2
		s := stint.New(1, stint.Config{Queue: queue})
		end := make(chan struct{})
		waits := func(context.Context) (int, error) { <-end; return 0, nil }
		for range 1 + queue {
			submit(t.Context(), s, waits)
		}
		var submitters []*submitter
		for range blocked {
			submitters = append(submitters, submit(t.Context(), s, waits))
		}
		for i, sub := range submitters {
			if !sub.blocked() {
				t.Fatalf("submitter %d is not blocked", i)
			}
			end <- struct{}{}
			synctest.Wait()
			if sub.blocked() {
				t.Errorf("submitter %d is still blocked: %+v", i, s.Stats())
			}
			wantCounts(t, s, 1, queue)
		}
		close(end)
		synctest.Wait()
		wantAllFree(t, s)
	})
}
