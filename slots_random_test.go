package stint_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/internal/slotstest"
)

// notified lets a test notify the scheduler although no slot has come free.
type notified struct {
	*slotstest.Fake

	notify func()
}

func (n *notified) Bind(notify func(), lost func(stint.Grant, error)) {
	n.notify = notify
	n.Fake.Bind(notify, lost)
}

// slotsUser makes random calls of a scheduler with shared slots.
type slotsUser struct {
	rnd    *rand.Rand
	s      stint.Scheduler
	pool   *slotstest.Pool
	slots  *notified
	claims []*claim
	leave  []context.CancelFunc // of claims
	jobs   []func()             // end functions that run or wait
	paused bool
}

func newSlotsUser(rnd *rand.Rand) *slotsUser {
	u := &slotsUser{rnd: rnd, pool: slotstest.NewPool(2)}
	u.slots = &notified{Fake: u.pool.Join("a")}
	cfg := stint.Config{Slots: u.slots, PerKey: 1, Caps: stint.Caps{Lowest: 1 + rnd.IntN(2)}}
	if rnd.IntN(2) == 0 {
		cfg.Queue = 3
	}
	u.s = stint.New(4, cfg)
	return u
}

// view is the scheduler with a random tier, key and weight.
func (u *slotsUser) view() stint.Scheduler {
	tier := []stint.Priority{stint.Lowest, stint.Normal, stint.High}[u.rnd.IntN(3)]
	return u.s.At(tier).Key([]string{"", "", "k"}[u.rnd.IntN(3)]).Weight(1 + u.rnd.IntN(6)/5)
}

func (u *slotsUser) step(ctx context.Context) {
	switch n := len(u.claims); u.rnd.IntN(12) {
	default:
		ctx, leave := context.WithCancel(ctx)
		u.claims, u.leave = append(u.claims, claimSlot(ctx, u.view())), append(u.leave, leave)
	case 4, 5, 6, 7:
		if n > 0 {
			u.end(u.rnd.IntN(n))
		}
	case 8:
		end, inner := make(chan struct{}), u.view()
		u.jobs = append(u.jobs, func() { close(end) })
		go stint.Go(ctx, u.view(), func(ctx context.Context) (int, error) {
			_, err := stint.Go(ctx, inner, nothing).Wait(ctx)
			<-end
			return 0, err
		})
	case 9:
		if len(u.jobs) > 0 {
			u.jobs[0]()
			u.jobs = u.jobs[1:]
		}
	case 10:
		u.pool.Resize(1 + u.rnd.IntN(4)) // as if other processes had taken or released slots
	case 11:
		if u.paused = !u.paused && u.rnd.IntN(4) == 0; u.paused {
			u.s.Pause("test")
		} else {
			u.s.Resume()
		}
	}
	synctest.Wait()
}

// end releases the slot of a claim, or ends its wait.
func (u *slotsUser) end(i int) {
	if c := u.claims[i]; c.holds() {
		releaseSlot(&c.permit)
	}
	u.leave[i]()
	last := len(u.claims) - 1
	u.claims[i], u.leave[i] = u.claims[last], u.leave[last]
	u.claims, u.leave = u.claims[:last], u.leave[:last]
}

// When all goroutines are blocked, nothing that waits could start: a notification without a
// reason changes nothing.
func TestSlots_NothingWaitsThatCouldStart(t *testing.T) {
	random := seeded.Rand(t)
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			u := newSlotsUser(random)
			for step := range 200 {
				u.step(t.Context())
				if random.IntN(4) > 0 {
					continue
				}
				before := u.s.Stats()
				u.slots.notify()
				synctest.Wait()
				if st := u.s.Stats(); st.Running != before.Running || st.Queued != before.Queued {
					t.Errorf("step %d: %d ran and %d waited; after a notification %d run and %d wait",
						step, before.Running, before.Queued, st.Running, st.Queued)
					break
				}
			}
			u.s.Resume()
			u.pool.Resize(4)
			for _, end := range u.jobs {
				end()
			}
			for synctest.Wait(); len(u.claims) > 0; synctest.Wait() {
				u.end(0)
			}
			wantAtRest(t, u.s, u.slots.Fake)
		})
	}
}
