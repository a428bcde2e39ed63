//go:build linux

package crashtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/httpstore"
)

// ledger has the receipts of submitters: the accepted tasks.
type ledger struct {
	mu     sync.Mutex
	plans  map[queue.ID]plan
	unique map[string]queue.ID
}

func newLedger() *ledger {
	return &ledger{plans: make(map[queue.ID]plan), unique: make(map[string]queue.ID)}
}

// note records the receipts of tasks.
func (l *ledger) note(tasks []queue.NewTask, plans []plan, receipts []queue.Receipt) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, r := range receipts {
		if !r.Existing {
			if r.ID != tasks[i].ID {
				return fmt.Errorf("the receipt of task %s is %+v", tasks[i].ID, r)
			}
			l.plans[r.ID] = plans[i]
		}
		key := tasks[i].Unique
		if first, known := l.unique[key]; key != "" && known && first != r.ID {
			return fmt.Errorf("two tasks have the unique key %q: %s and %s", key, first, r.ID)
		}
		if key != "" {
			l.unique[key] = r.ID
		}
	}
	return nil
}

// submitter submits tasks in a loop.
type submitter struct {
	*ledger
	stores []queue.Store // all are the same one, through different servers
	next   int           // which one is called next
	rnd    *rand.Rand
	ids    queue.IDs
	keys   int        // unique ones so far; two submitters use the same
	done   []queue.ID // accepted tasks that will succeed
}

// newSubmitter returns a submitter that takes turns at the servers of some sockets.
func newSubmitter(sockets []string, l *ledger, rnd *rand.Rand) (*submitter, error) {
	s := &submitter{ledger: l, rnd: rnd}
	for _, socket := range sockets {
		store, err := httpstore.Open("unix:"+socket, httpstore.Config{})
		if err != nil {
			return nil, err
		}
		s.stores = append(s.stores, store)
	}
	return s, nil
}

func (s *submitter) close() (err error) {
	for _, store := range s.stores {
		err = errors.Join(err, store.Close())
	}
	return err
}

// run submits until ctx ends, and repeats each call until it is answered.
func (s *submitter) run(ctx context.Context) error {
	for {
		tasks, plans := s.draw()
		err := s.submit(ctx, tasks, plans)
		if ctx.Err() != nil {
			return s.close()
		}
		if err != nil {
			return err
		}
		_ = pause(ctx, time.Duration(s.rnd.Int64N(int64(30*time.Millisecond))))
	}
}

// submit submits tasks, and repeats the call while the answer is that its effect is
// unknown.
func (s *submitter) submit(ctx context.Context, tasks []queue.NewTask, plans []plan) error {
	for {
		s.next++
		receipts, err := s.stores[s.next%len(s.stores)].Submit(ctx, time.Now(), tasks)
		switch {
		case err == nil:
			return s.note(tasks, plans, receipts)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !errors.Is(err, queue.ErrUnavailable) && !errors.Is(err, queue.ErrFull):
			return fmt.Errorf("submit: %w", err)
		}
		_ = pause(ctx, 20*time.Millisecond)
	}
}

// draw creates up to four tasks.
func (s *submitter) draw() (tasks []queue.NewTask, plans []plan) {
	for range 1 + s.rnd.IntN(4) {
		p := plan{Work: time.Duration(s.rnd.Int64N(int64(60 * time.Millisecond)))}
		spec := queue.Spec{Options: queue.Options{MaxAttempts: attempts, MaxCrashes: 1000}}
		if s.rnd.IntN(2) == 0 {
			spec.Key = fmt.Sprint("key-", s.rnd.IntN(5))
		}
		switch s.rnd.IntN(12) {
		case 0:
			p.Fails = 1 + s.rnd.IntN(attempts)
		case 1:
			p.Snoozes = 1 + s.rnd.IntN(3)
		case 2:
			p.Dies = true
		case 3:
			p.Work = 2 * lease // longer than a lease
		case 4:
			spec.Unique = fmt.Sprint("unique-", s.keys)
			s.keys++
		case 5:
			spec.RunAt = time.Now().Add(time.Duration(s.rnd.Int64N(int64(time.Second))))
		case 6:
			if len(s.done) > 0 {
				spec.After = []queue.ID{s.done[s.rnd.IntN(len(s.done))]}
			}
		}
		task := planned(s.ids.New(time.Now()), p, spec)
		tasks, plans = append(tasks, task), append(plans, p)
		if p.ends() == queue.Succeeded && spec.Unique == "" {
			s.done = append(s.done, task.ID)
		}
	}
	return tasks, plans
}

func planned(id queue.ID, p plan, spec queue.Spec) queue.NewTask {
	payload, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	spec.Kind, spec.Payload = kind, payload
	return queue.NewTask{ID: id, Spec: spec}
}
