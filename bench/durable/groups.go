package durable

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/cluster"
	"github.com/stintgo/stint/queue/pgstore"

	"github.com/stintgo/stint/bench/measure"
)

// The names of the subjects with two queues.
const (
	oneGroup   = "stint, PostgreSQL, one group (synced)"
	twoGroups  = "stint, PostgreSQL, two groups on one server (synced)"
	twoServers = "stint, PostgreSQL, two groups on two servers (synced)"
)

// groups is the row of two queues of one process, which leads one or two groups. The servers
// and the process share the processors of one machine, so two groups are worth it here only
// as far as one leader leaves some of them idle.
func (s *Systems) groups(name string, submit func(keeper, int) error) measure.Case {
	c := measure.Case{Name: name, Ours: twoGroups, Readings: []measure.Reading{{Name: rate, Unit: "/s"}}}
	for _, of := range []struct {
		name    string
		servers []string
	}{
		{twoGroups, []string{"first", "first"}}, {twoServers, []string{"first", "second"}}, {oneGroup, []string{"first"}},
	} {
		probe := s.working(30_000, openGroups(of.servers), submit)
		c.Subjects = append(c.Subjects, measure.Subject{Name: of.name, Probe: probe})
	}
	return c
}

// twoQueues has two queues: each call of submit is for the next one.
type twoQueues struct {
	*stintQueue
	next atomic.Int64
}

// queueNames are the queues: each is in a group of its own if there are two groups.
func queueNames() []string { return []string{"default", "second"} }

// openGroups opens a group for each of servers, which name the servers that they are on.
func openGroups(servers []string) opener {
	return func(t *turn) (keeper, error) {
		urls := make(map[string]string)
		groups := make([]cluster.Group, len(servers))
		for i, server := range servers {
			if urls[server] == "" {
				dir := filepath.Join(t.dir, server)
				if err := os.Mkdir(dir, 0o711); err != nil { //nolint:gosec // PostgreSQL does not run as root
					return nil, err
				}
				url, stop, err := t.postgres.Start(dir)
				if err != nil {
					return nil, err
				}
				t.Cleanup(stop)
				urls[server] = url
			}
			name := queueNames()[i]
			groups[i].Name, groups[i].Open = name, func(ctx context.Context, self queue.Leader) (cluster.Store, error) {
				cfg := pgstore.Config{Name: self.Name, Contact: self.Contact, Schema: name}
				return pgstore.Open(ctx, urls[server], cfg)
			}
			if i > 0 {
				groups[i].Queues = []string{name}
			}
		}
		store, err := cluster.OpenGroups(context.Background(), groups, cluster.Config{})
		if err != nil {
			return nil, err
		}
		return &twoQueues{stintQueue: newStintQueue(t, store)}, nil
	}
}

func (q *twoQueues) options() queue.Options {
	return queue.Options{Queue: queueNames()[q.next.Add(1)%2]}
}

func (q *twoQueues) submit(stamp int64) error {
	_, err := stintKind.Submit(context.Background(), q.queue, newArgs(stamp), q.options())
	return err
}

func (q *twoQueues) work(handled func(stamp int64)) error {
	slots := stint.New(workers, stint.Config{})
	q.turn.Cleanup(slots.Close)
	return q.workOn(slots, handled, queueNames()...)
}

func (q *twoQueues) unsettled() (int, error) { return q.unsettledIn(queueNames()...) }

var _ system = (*twoQueues)(nil)
