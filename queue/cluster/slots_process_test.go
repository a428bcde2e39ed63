package cluster_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/cluster"
	"github.com/stintgo/stint/queue/pgstore"
	"github.com/stintgo/stint/queue/redisstore"
)

// childVariable is the environment variable that makes the test program a child.
const childVariable = "STINT_CLUSTER_TEST_CHILD"

// child is a process with a node, whose workers enter and leave under a limit.
type child struct {
	Name     string
	Postgres string // the URL, or ""
	Redis    string
	Store    string // the schema or prefix
	Max      int
	Workers  int
	Lease    time.Duration
	Checker  string // the address
	Hold     time.Duration
}

func (c child) open(ctx context.Context, self queue.Leader) (cluster.Store, error) {
	if c.Postgres != "" {
		return pgstore.Open(ctx, c.Postgres, pgstore.Config{Schema: c.Store, Name: self.Name, Contact: self.Contact})
	}
	return redisstore.Open(ctx, c.Redis, redisstore.Config{Prefix: c.Store, Name: self.Name, Contact: self.Contact})
}

// run works until the process is killed. The error is about the beginning.
func (c child) run(ctx context.Context) error {
	n, err := cluster.OpenWith(ctx, c.open, cluster.Config{Name: c.Name}, c.Lease)
	if err != nil {
		return err
	}
	all, err := n.Slots("limit", cluster.SlotsConfig{Max: c.Max})
	if err != nil {
		return err
	}
	slots := &timedSlots{Slots: all, taken: map[stint.Grant]time.Time{}}
	s := stint.New(c.Workers, stint.Config{Slots: slots})
	var workers sync.WaitGroup
	for range c.Workers {
		checker, err := new(net.Dialer).DialContext(ctx, "tcp", c.Checker)
		if err != nil {
			return err
		}
		w := worker{checker, bufio.NewScanner(checker)}
		w.say("child " + c.Name)
		workers.Go(func() {
			for {
				_, err := stint.Go(ctx, s, func(ctx context.Context) (struct{}, error) {
					taken := slots.earliest()
					if err := ctx.Err(); err != nil {
						return struct{}{}, err // the slot was lost before the worker could enter
					}
					w.say(fmt.Sprintf("enter %d", taken.UnixNano()))
					select {
					case <-time.After(c.Hold):
						w.say("leave")
					case <-ctx.Done():
						w.say("lost")
					}
					return struct{}{}, nil
				}).Wait(ctx)
				if err != nil {
					w.say("error " + err.Error())
				}
			}
		})
	}
	workers.Wait()
	return nil
}

// timedSlots are Slots that know when each slot was taken: a process can be stopped after it
// has taken a slot and before its worker enters.
type timedSlots struct {
	*cluster.Slots

	mu    sync.Mutex // guards the field below
	taken map[stint.Grant]time.Time
}

func (s *timedSlots) Bind(notify func(), lost func(stint.Grant, error)) {
	s.Slots.Bind(notify, func(g stint.Grant, cause error) {
		lost(g, cause) // cancels the context of the worker before its slot is forgotten
		s.forget(g)
	})
}

func (s *timedSlots) TryAcquire(tier stint.Priority) (stint.Grant, error) {
	at := time.Now()
	g, err := s.Slots.TryAcquire(tier)
	if err == nil {
		s.mu.Lock()
		s.taken[g] = at
		s.mu.Unlock()
	}
	return g, err
}

func (s *timedSlots) Release(g stint.Grant) {
	s.forget(g)
	s.Slots.Release(g)
}

func (s *timedSlots) forget(g stint.Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.taken, g)
}

// earliest returns when the oldest slot was taken that this process has: a worker does not
// know which one is its own.
func (s *timedSlots) earliest() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := time.Now()
	for _, at := range s.taken {
		if at.Before(first) {
			first = at
		}
	}
	return first
}

// worker is a worker of a child, and its connection to the checker.
type worker struct {
	out io.Writer
	in  *bufio.Scanner
}

// say sends a line, and waits until the checker has read it.
func (w worker) say(line string) {
	if _, err := fmt.Fprintln(w.out, line); err != nil || !w.in.Scan() {
		os.Exit(1) // the test has ended
	}
}

// childMain is the main function of a child.
func childMain(config string) {
	var c child
	err := json.Unmarshal([]byte(config), &c)
	if err == nil {
		err = c.run(context.Background())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// checker counts the workers of all children that are inside.
type checker struct {
	t       *testing.T
	most    int
	address string

	mu       sync.Mutex // guards the fields below
	children map[string]*process
	entered  int
	lost     int
	peak     int
	news     chan struct{} // closed at the next change
}

// process is a child as the checker sees it.
type process struct {
	name    string
	cmd     *exec.Cmd
	dead    bool
	stopped bool
	resumed time.Time
	epoch   int // grows when what is inside is not counted any more
	inside  int
	entered int

	resumedWith int // entered, when it was resumed
}

func newChecker(t *testing.T, most int) *checker {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &checker{
		t: t, most: most, address: l.Addr().String(), children: map[string]*process{}, news: make(chan struct{}),
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { c.serve(conn) })
		}
	})
	t.Cleanup(func() {
		for _, p := range c.children {
			if !p.dead {
				_ = p.cmd.Process.Kill()
				_ = p.cmd.Wait()
			}
		}
		_ = l.Close()
		conns.Wait()
	})
	return c
}

// start starts a child.
func (c *checker) start(as child) *process {
	c.t.Helper()
	as.Checker, as.Max = c.address, c.most
	config, err := json.Marshal(as)
	if err != nil {
		c.t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	p := &process{name: as.Name, cmd: exec.CommandContext(context.WithoutCancel(c.t.Context()), exe)}
	p.cmd.Env = append(os.Environ(), childVariable+"="+string(config))
	p.cmd.Stderr = c.t.Output()
	c.mu.Lock()
	c.children[as.Name] = p
	c.mu.Unlock()
	if err := p.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	return p
}

// serve counts for a worker. A worker that has got its slot before its process was stopped
// and continued does not count: it is about to find out that the slot is lost.
func (c *checker) serve(conn net.Conn) {
	defer conn.Close()
	var p *process
	epoch := -1 // in which this worker entered, if it counts
	for in := bufio.NewScanner(conn); in.Scan(); {
		c.mu.Lock()
		var name, message string
		var at int64
		line := in.Text()
		switch {
		case scan(line, "child %s", &name):
			p = c.children[name]
		case scan(line, "enter %d", &at):
			if !p.dead && !p.stopped && time.Unix(0, at).After(p.resumed) {
				epoch = p.epoch
				p.inside++
				c.enterLocked(p)
			}
		case line == "leave" || line == "lost":
			if epoch == p.epoch {
				p.inside--
			}
			if line == "lost" {
				c.lost++
			}
			epoch = -1
		case scan(line, "error %s", &message):
			c.t.Logf("%s: %s", p.name, line)
		}
		c.changedLocked()
		c.mu.Unlock()
		if _, err := fmt.Fprintln(conn, "ok"); err != nil {
			return
		}
	}
}

func scan(line, format string, to any) bool {
	n, err := fmt.Sscanf(line, format, to)
	return n == 1 && err == nil
}

func (c *checker) enterLocked(p *process) {
	c.entered++
	p.entered++
	n := 0
	for _, q := range c.children {
		n += q.inside
	}
	c.peak = max(c.peak, n)
	if n > c.most {
		c.t.Errorf("%d workers are inside, the limit is %d", n, c.most)
	}
}

func (c *checker) changedLocked() {
	close(c.news)
	c.news = make(chan struct{})
}

// await waits for a condition.
func (c *checker) await(what string, met func() bool) {
	c.t.Helper()
	late := time.After(2 * time.Minute)
	for {
		c.mu.Lock()
		done, news := met(), c.news
		c.mu.Unlock()
		if done {
			return
		}
		select {
		case <-news:
		case <-late:
			c.t.Fatalf("no %s within two minutes", what)
		}
	}
}

// forgetLocked ends the counting of what is inside.
func (p *process) forgetLocked() { p.epoch, p.inside = p.epoch+1, 0 }

func (c *checker) kill(p *process) {
	c.mu.Lock()
	p.dead = true
	p.forgetLocked()
	c.mu.Unlock()
	if err := p.cmd.Process.Kill(); err != nil {
		c.t.Error(err)
	}
	_ = p.cmd.Wait() // it was killed
}

func (c *checker) stop(p *process) {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		c.t.Error(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p.stopped = true
	p.forgetLocked()
}

func (c *checker) resume(p *process) {
	c.mu.Lock()
	p.stopped, p.resumed, p.resumedWith = false, time.Now(), p.entered
	c.mu.Unlock()
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		c.t.Error(err)
	}
}

// childOf returns a child on a new store of a kind.
func childOf(t *testing.T, k kind) child {
	t.Helper()
	c := child{Store: fmt.Sprintf("processes-%d", stores.Add(1))}
	if k.name == "Redis" {
		c.Redis = sharedRedis(t)
	} else {
		c.Postgres = sharedPostgres(t)
	}
	return c
}

// TestC11_SlotsOfKilledProcesses: processes with nodes, the leader among them, are killed,
// and stopped for longer than all leases. Never are more slots in use than there are, and at
// the end all of them can be used.
func TestC11_SlotsOfKilledProcesses(t *testing.T) {
	for _, k := range contractKinds() {
		t.Run(k.name, func(t *testing.T) {
			const most, lease, rounds = 3, 2 * time.Second, 6
			seed := seeded.Seed(t)
			random := rand.New(rand.NewPCG(seed, 0))
			c, as := newChecker(t, most), childOf(t, k)
			as.Workers, as.Lease, as.Hold = 4, lease, 5*time.Millisecond
			var processes []*process
			start := func(i int) *process {
				as.Name = fmt.Sprintf("%d-%d", i, len(c.children))
				return c.start(as)
			}
			for i := range 4 {
				processes = append(processes, start(i))
				p := processes[i]
				c.await("first entry", func() bool { return i > 0 || p.entered > 0 }) // the first one leads
			}
			var stopped *process
			for round := range rounds {
				if round%3 == 2 {
					<-time.After(lease + lease/2) // a stopped process, and a killed one, have lost their slots
				}
				c.mu.Lock()
				before := c.entered
				c.mu.Unlock()
				c.await("progress", func() bool { return c.entered > before+20 })
				i := random.IntN(len(processes))
				switch p := processes[i]; {
				case stopped != nil && round%3 == 0:
					c.resume(stopped)
					stopped = nil
				case p == stopped:
				case random.IntN(2) == 0 && stopped == nil:
					c.stop(p)
					stopped = p
				default:
					c.kill(p)
					processes[i] = start(i)
				}
			}
			if stopped != nil {
				c.resume(stopped)
			}
			for _, p := range processes {
				c.kill(p)
			}
			as.Name, as.Hold = "last", time.Hour
			c.start(as)
			began := time.Now()
			c.await("full use", func() bool { return c.children["last"].inside == most })
			t.Logf("%d entries, %d lost, up to %d at once; all slots are back %s after the end of all", c.entered, c.lost,
				c.peak, time.Since(began).Round(time.Millisecond))
		})
	}
}

// TestC11_WorkOutlivesTheLeader: work on slots of a follower goes on when the leader is
// killed, and its slots count at the next leader.
func TestC11_WorkOutlivesTheLeader(t *testing.T) {
	k := kinds[1]
	const most = 4
	c, as := newChecker(t, most), childOf(t, k)
	as.Workers, as.Hold, as.Name = 2, time.Hour, "leader"
	leader := c.start(as)
	c.await("entries", func() bool { return leader.inside == 2 })
	as.Name = "follower"
	follower := c.start(as)
	c.await("entries", func() bool { return follower.inside == 2 })
	c.kill(leader)
	as.Name = "waits"
	next := c.start(as)
	c.await("entries", func() bool { return next.inside == 2 })
	if c.lost > 0 || follower.inside != 2 {
		t.Errorf("%d slots were lost", c.lost)
	}
}

// TestC11_SlotsOfAStoppedLeader: a leader that is stopped for longer than its lease grants
// nothing when it wakes up, whatever it believes, and its own workers have lost their slots.
func TestC11_SlotsOfAStoppedLeader(t *testing.T) {
	k := kinds[1]
	const most, lease = 3, 2 * time.Second
	c, as := newChecker(t, most), childOf(t, k)
	as.Workers, as.Lease, as.Hold = 3, lease, 5*time.Millisecond
	var all []*process
	for _, as.Name = range []string{"leader", "second", "third"} {
		p := c.start(as)
		c.await("entries", func() bool { return p.entered > 10 })
		all = append(all, p)
	}
	for range 2 {
		c.stop(all[0])
		c.mu.Lock()
		before, lost := all[1].entered, c.lost
		c.mu.Unlock()
		<-time.After(lease * 2) // another node leads, and what the leader had is free
		c.await("entries without the leader", func() bool { return all[1].entered > before+50 })
		c.resume(all[0])
		c.await("entries of the former leader", func() bool { return all[0].entered > all[0].resumedWith+50 })
		t.Logf("%d slots were lost", c.lost-lost)
		all[0], all[1] = all[1], all[0] // perhaps the next leader
	}
}
