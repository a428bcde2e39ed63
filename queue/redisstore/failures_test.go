package redisstore_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/redisstore"
	"github.com/stintgo/stint/queue/storetest"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// open opens a store, and closes it when the test ends.
func open(t *testing.T, url string, cfg redisstore.Config) *redisstore.Store {
	t.Helper()
	s, err := redisstore.Open(t.Context(), url, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // it may have been closed, have lost the lead, or have no server
		if err := s.Close(); err != nil && !errors.Is(err, queue.ErrUnavailable) {
			t.Error(err)
		}
	})
	return s
}

// closes closes a store that leads.
func closes(t *testing.T, s *redisstore.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// submit submits one task.
func submit(ctx context.Context, s queue.Store, id queue.ID) error {
	_, err := s.Submit(ctx, now, []queue.NewTask{{ID: id, Spec: queue.Spec{Kind: "work", Payload: id[:]}}})
	return err
}

// accepts submits a task that must be accepted.
func accepts(t *testing.T, s queue.Store, ids *queue.IDs) queue.ID {
	t.Helper()
	id := ids.New(now)
	if err := submit(t.Context(), s, id); err != nil {
		t.Fatal(err)
	}
	return id
}

// refuses submits a task that must be refused because the store is unavailable, for a
// reason that the error contains.
func refuses(t *testing.T, s queue.Store, ids *queue.IDs, reason string) {
	t.Helper()
	err := submit(t.Context(), s, ids.New(now))
	if !errors.Is(err, queue.ErrUnavailable) || !strings.Contains(err.Error(), reason) {
		t.Fatalf("a submit returns %v, want ErrUnavailable with %q", err, reason)
	}
}

// find returns how many tasks a store has, and reports IDs that it lacks.
func find(t *testing.T, s queue.Store, ids ...queue.ID) int {
	t.Helper()
	found, err := s.Find(t.Context(), queue.Filter{}, queue.Page{Limit: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	have := make(map[queue.ID]bool)
	for i := range found {
		have[found[i].ID] = true
	}
	for _, id := range ids {
		if !have[id] {
			t.Errorf("task %s was accepted, and is lost", id)
		}
	}
	if err := storetest.Check(t.Context(), s); err != nil {
		t.Error(err)
	}
	return len(found)
}

// load is callers that submit tasks until they are stopped.
type load struct {
	running  sync.WaitGroup
	end      chan struct{}
	answered chan struct{} // receives while calls are answered

	mu       sync.Mutex
	accepted []queue.ID
	asked    int
}

// newLoad starts callers. Each repeats a submit whose outcome is unknown, as a client does.
func newLoad(t *testing.T, s queue.Store, callers int) *load {
	t.Helper()
	l := &load{end: make(chan struct{}), answered: make(chan struct{}, 1)}
	var ids queue.IDs
	for range callers {
		l.running.Go(func() {
			for !l.ended() {
				id := ids.New(now)
				l.mu.Lock()
				l.asked++
				l.mu.Unlock()
				err := submit(t.Context(), s, id)
				for errors.Is(err, queue.ErrUnavailable) && !l.ended() {
					err = submit(t.Context(), s, id)
				}
				if err != nil {
					if !errors.Is(err, queue.ErrUnavailable) {
						t.Error(err)
					}
					return
				}
				l.mu.Lock()
				l.accepted = append(l.accepted, id)
				l.mu.Unlock()
				select {
				case l.answered <- struct{}{}:
				default:
				}
			}
		})
	}
	return l
}

func (l *load) ended() bool {
	select {
	case <-l.end:
		return true
	default:
		return false
	}
}

// wait waits until about n more calls have been answered.
func (l *load) wait(n int) {
	for range n {
		<-l.answered
	}
}

// stop ends the callers, and returns the tasks that were accepted.
func (l *load) stop() []queue.ID {
	close(l.end)
	l.running.Wait()
	return l.accepted
}

// TestC6_ConnectionsAreCut: connections are cut after random numbers of bytes, in the
// middle of batches and of answers. Every task that was accepted is there, and no other.
func TestC6_ConnectionsAreCut(t *testing.T) {
	server, prefix, rng := sharedServer(t), newPrefix(), seeded.Rand(t)
	p := newProxy(t, server.socket())
	s := open(t, p.url(), redisstore.Config{Prefix: prefix, Lease: time.Minute})
	l := newLoad(t, s, 8)
	for range 40 {
		p.cutAfter(1 + rng.IntN(20_000))
		<-p.cut
		l.wait(5)
	}
	p.cutAfter(0)
	accepted := l.stop()
	closes(t, s)
	again := open(t, server.url(), redisstore.Config{Prefix: prefix})
	if n := find(t, again, accepted...); n < len(accepted) || n > l.asked {
		t.Errorf("the store has %d tasks; %d were accepted, and %d submitted", n, len(accepted), l.asked)
	}
}

// TestC6_ServerIsKilled: the server is killed while callers wait, and started again. With
// appendfsync always, no task that was accepted is lost.
func TestC6_ServerIsKilled(t *testing.T) {
	server := newServer(t, "--appendonly", "yes", "--appendfsync", "always")
	s := open(t, server.url(), redisstore.Config{Lease: time.Minute})
	l := newLoad(t, s, 4)
	for range 4 {
		l.wait(50)
		server.kill()
		server.again(t)
	}
	l.wait(50)
	accepted := l.stop()
	find(t, s, accepted...)
	closes(t, s)
	find(t, open(t, server.url(), redisstore.Config{}), accepted...)
}

// TestC6_ServerIsAway: without a server, calls return after some seconds with the reason,
// and the store can be closed. What had been decided is written when the server is back.
func TestC6_ServerIsAway(t *testing.T) {
	server := newServer(t, "--appendonly", "yes", "--appendfsync", "always")
	back := make(signal, 1)
	s := open(t, server.url(), redisstore.Config{Logger: slog.New(back)})
	var ids queue.IDs
	server.kill()
	late := ids.New(now)
	if err := submit(t.Context(), s, late); !errors.Is(err, queue.ErrUnavailable) ||
		!strings.Contains(err.Error(), "cannot be reached: start it") {
		t.Errorf("a submit without a server: %v", err)
	}
	server.again(t)
	<-back
	accepted := accepts(t, s, &ids)
	find(t, s, late, accepted)
	server.kill()
	_ = submit(t.Context(), s, ids.New(now))
	if err := s.Close(); !errors.Is(err, queue.ErrUnavailable) && !errors.Is(err, queue.ErrClosed) {
		t.Errorf("without a server, Close returns %v", err)
	}
}

// TestC6_ServerHangs: the log says that a server does not answer, whatever error the connection has.
func TestC6_ServerHangs(t *testing.T) {
	server := newServer(t, "--appendonly", "no")
	failed := make(failures, 1)
	s := open(t, server.url(), redisstore.Config{Logger: slog.New(failed)})
	server.stop(t)
	if err := <-failed; !strings.Contains(err, "no answer in time: the server hangs") {
		t.Errorf("the log says %q", err)
	}
	server.kill()
	_ = s.Close() // it cannot reach the server
}

// failures is the handler of a log that receives the error of a server that fails.
type failures chan string

func (f failures) Enabled(context.Context, slog.Level) bool { return true }
func (f failures) WithAttrs([]slog.Attr) slog.Handler       { return f }
func (f failures) WithGroup(string) slog.Handler            { return f }

func (f failures) Handle(_ context.Context, r slog.Record) error {
	if !strings.Contains(r.Message, "the database fails") {
		return nil
	}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" {
			select {
			case f <- a.Value.String():
			default:
			}
		}
		return true
	})
	return nil
}

// signal is the handler of a log that receives when the server answers again.
type signal chan struct{}

func (s signal) Enabled(context.Context, slog.Level) bool { return true }
func (s signal) WithAttrs([]slog.Attr) slog.Handler       { return s }
func (s signal) WithGroup(string) slog.Handler            { return s }

func (s signal) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "no longer fail") || strings.Contains(r.Message, "has room again") {
		select {
		case s <- struct{}{}:
		default:
		}
	}
	return nil
}

// TestC6_ServerIsSetBack: the server is started on an older copy of its data. The process
// that leads notices that, and another one continues with what is there.
func TestC6_ServerIsSetBack(t *testing.T) {
	server := newServer(t, "--appendonly", "yes", "--appendfsync", "always")
	s := open(t, server.url(), redisstore.Config{})
	var ids queue.IDs
	kept := accepts(t, s, &ids)
	files, earlier := filepath.Join(server.dir, "appendonlydir"), filepath.Join(t.TempDir(), "copy")
	if _, err := os.Stat(files); err != nil {
		files = filepath.Join(server.dir, "appendonly.aof") // before Redis 7
	}
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", files, earlier).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	accepts(t, s, &ids)
	server.kill()
	if err := errors.Join(os.RemoveAll(files), os.Rename(earlier, files)); err != nil {
		t.Fatal(err)
	}
	server.again(t)
	refuses(t, s, &ids, "has lost changes that it had confirmed")
	<-s.Lost()
	if err := s.Close(); !errors.Is(err, queue.ErrUnavailable) {
		t.Errorf("Close returns %v", err)
	}
	again := open(t, server.url(), redisstore.Config{})
	if n := find(t, again, kept); n != 1 {
		t.Errorf("there are %d tasks, want 1", n)
	}
}

// TestC6_ServerLosesEverything: an idle process notices too that the server has been
// started without its data.
func TestC6_ServerLosesEverything(t *testing.T) {
	server := newServer(t, "--appendonly", "no")
	s := open(t, server.url(), redisstore.Config{Lease: 300 * time.Millisecond})
	var ids queue.IDs
	accepts(t, s, &ids)
	server.kill()
	server.again(t)
	<-s.Lost()
	refuses(t, s, &ids, "nothing of the store")
}

// TestC6_AnOlderEpoch: a leader whose epoch the server has lost neither writes nor takes
// another leader of the same epoch for itself.
func TestC6_AnOlderEpoch(t *testing.T) {
	server, prefix := sharedServer(t), newPrefix()
	raw, leader := server.raw(t), "{"+prefix+"}:leader"
	first := open(t, server.url(), redisstore.Config{Prefix: prefix})
	closes(t, first)
	before := raw.HGetAll(t.Context(), leader).Val()
	second := open(t, server.url(), redisstore.Config{Prefix: prefix, Lease: time.Minute})
	var ids queue.IDs
	accepts(t, second, &ids)
	for name, value := range before { // the server goes back, and a third process leads
		raw.HSet(t.Context(), leader, name, value)
	}
	third := open(t, server.url(), redisstore.Config{Prefix: prefix, Lease: time.Minute})
	if epoch := raw.HGet(t.Context(), leader, "epoch").Val(); epoch != "2" {
		t.Fatalf("the third leader has epoch %s, and must have that of the second", epoch)
	}
	refuses(t, second, &ids, "another process leads")
	accepts(t, third, &ids)
}

// TestC6_MemoryIsFull: a server without memory refuses new tasks. The leader stays, and the tasks
// that it has go on; there are new ones again when there is memory.
func TestC6_MemoryIsFull(t *testing.T) {
	server := newServer(t, "--appendonly", "no")
	raw, back := server.raw(t), make(signal, 1)
	s := open(t, server.url(), redisstore.Config{Logger: slog.New(back), Lease: 300 * time.Millisecond})
	var ids queue.IDs
	settled, cancelled := accepts(t, s, &ids), accepts(t, s, &ids)
	raw.ConfigSet(t.Context(), "maxmemory", "100kb")
	until := func() int { return number(t, raw.HGet(t.Context(), "{stint}:leader", "until").Val()) }
	for begun := until(); until() < begun+1000; { // several leases long
	}
	refuses(t, s, &ids, "the memory of the server is full: raise maxmemory")
	if stats, err := s.Stats(t.Context(), now); err != nil || !strings.Contains(stats.Refuses, "raise maxmemory") {
		t.Errorf("the stats say that the store refuses because of %q, %v", stats.Refuses, err)
	}

	claim := queue.Claim{Worker: "w", Kinds: []string{"work"}, Max: 1, Lease: time.Minute}
	got, err := s.Claim(t.Context(), now, claim)
	if err != nil || len(got.Tasks) != 1 || got.Tasks[0].ID != settled {
		t.Fatalf("a claim returns %v, %v", got.Tasks, err)
	}
	answers, err := s.Settle(t.Context(), now, []queue.Outcome{
		{ID: settled, Token: got.Tasks[0].Lease.Token, Kind: queue.OutcomeSuccess},
	})
	if err != nil || answers[0] != nil {
		t.Errorf("settling returns %v, %v", answers, err)
	}
	cancel := queue.Command{Do: queue.OrderCancel, Filter: queue.Filter{IDs: []queue.ID{cancelled}}}
	if n, err := s.Command(t.Context(), now, cancel); n != 1 || err != nil {
		t.Errorf("a command cancels %d tasks, %v", n, err)
	}
	closes(t, s) // another leader finds all of it, and has no room either
	s = open(t, server.url(), redisstore.Config{Logger: slog.New(back), Lease: 300 * time.Millisecond})
	for _, id := range []queue.ID{settled, cancelled} {
		found, err := s.Find(t.Context(), queue.Filter{IDs: []queue.ID{id}}, queue.Page{})
		if err != nil || len(found) != 1 || !found[0].State.Finished() {
			t.Errorf("a task that has ended is found as %v, %v", found, err)
		}
	}

	refuses(t, s, &ids, "the memory of the server is full: raise maxmemory")
	raw.ConfigSet(t.Context(), "maxmemory", "0")
	<-back
	accepts(t, s, &ids)
}

// TestC6_ScriptsAreFlushed: a server that has forgotten the scripts gets them again.
func TestC6_ScriptsAreFlushed(t *testing.T) {
	server := newServer(t, "--appendonly", "no")
	s := open(t, server.url(), redisstore.Config{})
	var ids queue.IDs
	first := accepts(t, s, &ids)
	server.raw(t).ScriptFlush(t.Context())
	find(t, s, first, accepts(t, s, &ids))
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
