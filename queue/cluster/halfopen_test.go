package cluster_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/netfault"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/cluster"
	"github.com/stintgo/stint/queue/storetest"
)

// apart opens a node that leads and one that follows, whose connections pass a proxy.
func apart(t *testing.T) (leader, follower *cluster.Node, between *netfault.Proxy) {
	t.Helper()
	opener := kinds[1].opener(t, storetest.Config{})
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	if between, err = netfault.New(at); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := between.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := l.Close(); err != nil { // the leader listens there
		t.Fatal(err)
	}
	leader = open(t, opener, cluster.Config{Name: "leader", Listen: at, Address: between.Addr()})
	follower = open(t, opener, cluster.Config{Name: "follower"})
	return leader, follower, between
}

// TestC11_DeadConnections: a connection to the leader that is open, and over which nothing
// passes any more, costs some seconds: the calls over it are made again over another one, and
// none ends with an error. So does a signal that waits for it.
func TestC11_DeadConnections(t *testing.T) {
	leader, follower, between := apart(t)
	var ids queue.IDs
	if _, err := submit(t.Context(), follower, &ids); err != nil { // over a connection that stays
		t.Fatal(err)
	}
	ready, stop := follower.Listen("default")
	defer stop()
	<-ready // at the beginning
	between.Deaden()
	began := time.Now()
	var calls sync.WaitGroup
	for range 10 {
		id := ids.New(began)
		calls.Go(func() {
			task := queue.NewTask{ID: id, Spec: queue.Spec{Kind: "work"}}
			if _, err := follower.Submit(t.Context(), began, []queue.NewTask{task}); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	t.Logf("calls over a dead connection are answered after %s", time.Since(began).Round(time.Millisecond))
	found, err := leader.Find(t.Context(), queue.Filter{}, queue.Page{Limit: 100})
	if err != nil || len(found) != 11 {
		t.Errorf("the leader has %d tasks, want 11; %v", len(found), err)
	}
	for done := false; !done; {
		select {
		case <-ready:
			done = true
		case <-t.Context().Done():
			t.Fatal("no signal has come")
		}
	}
}

// TestC11_StalledLeader: calls wait while nothing passes between two nodes, end with their
// contexts, and are answered when the leader is reached again, which has led all the time.
func TestC11_StalledLeader(t *testing.T) {
	_, follower, between := apart(t)
	var ids queue.IDs
	if _, err := submit(t.Context(), follower, &ids); err != nil {
		t.Fatal(err)
	}
	between.Set(netfault.Fault{Stall: true})
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	if _, err := follower.Find(ctx, queue.Filter{}, queue.Page{}); err == nil || ctx.Err() == nil {
		t.Errorf("over a stalled connection, the answer is %v", err)
	}
	errs := make(chan error, 1)
	go func() {
		_, err := submit(t.Context(), follower, &ids)
		errs <- err
	}()
	// Longer than a connection may be silent, so that new ones are tried too.
	silent, end := context.WithTimeout(t.Context(), 5*time.Second)
	defer end()
	<-silent.Done()
	between.Set(netfault.Fault{})
	if err := <-errs; err != nil {
		t.Error(err)
	}
}

// lines is a writer that passes each write on.
type lines chan string

func (l lines) Write(text []byte) (int, error) {
	select {
	case l <- string(text):
	default: // no reader needs more
	}
	return len(text), nil
}

// logged returns a logger of warnings, and waits until it has written a line that contains a text.
func logged() (log *slog.Logger, await func(t *testing.T, text string)) {
	all := make(lines, 100)
	log = slog.New(slog.NewTextHandler(all, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return log, func(t *testing.T, text string) {
		t.Helper()
		for {
			select {
			case line := <-all:
				if strings.Contains(line, text) {
					return
				}
			case <-t.Context().Done():
				t.Fatalf("nothing is logged with %q", text)
			}
		}
	}
}

// TestC11_AddressThatCannotBeReached: a leader that the others do not reach says so in its log,
// and they in theirs. The error of a call names the leader and the address that the others were
// given.
func TestC11_AddressThatCannotBeReached(t *testing.T) {
	const nobody = "127.0.0.1:1"
	opener := kinds[1].opener(t, storetest.Config{})
	log, awaitLog := logged()
	open(t, opener, cluster.Config{Name: "leader", Address: nobody, Logger: log})
	awaitLog(t, "does not reach itself")
	log, awaitLog = logged()
	follower := open(t, opener, cluster.Config{Name: "follower", Patience: time.Millisecond, Logger: log})
	_, err := follower.Stats(t.Context(), time.Now())
	const says = "the node that leads cannot be reached: leader at " + nobody + " (its --node-address): dial tcp"
	if !errors.Is(err, queue.ErrUnavailable) || !strings.Contains(err.Error(), says) {
		t.Errorf("the error is %v", err)
	}
	awaitLog(t, "the node that leads does not answer this one")
}

// TestC11_AddressesThatAreRefused: the error of an address at which a node cannot listen, or at which no
// other can reach it, names the setting to correct, with groups and without.
func TestC11_AddressesThatAreRefused(t *testing.T) {
	opener := func(context.Context, queue.Leader) (cluster.Store, error) {
		return nil, errors.New("the store is opened")
	}
	groups := []cluster.Group{{Name: "mail", Queues: []string{"news"}, Open: opener}, {Name: "rest", Open: opener}}
	opens := map[string]func(cfg cluster.Config) error{
		"Open": func(cfg cluster.Config) error {
			_, err := cluster.Open(t.Context(), opener, cfg)
			return err
		},
		"OpenGroups": func(cfg cluster.Config) error {
			_, err := cluster.OpenGroups(t.Context(), groups, cfg)
			return err
		},
	}
	for _, row := range []struct {
		listen, address string
		kind            error
		says            string
	}{
		{"nonsense", "", queue.ErrInvalid, "Listen (--node-listen): address nonsense: missing port"},
		{"127.0.0.1", "", queue.ErrInvalid, "Listen (--node-listen): address 127.0.0.1: missing port"},
		{"127.0.0.1:http", "", queue.ErrInvalid, "Listen (--node-listen): address 127.0.0.1:http: its port"},
		{"127.0.0.1:65536", "", queue.ErrInvalid, "Listen (--node-listen): address 127.0.0.1:65536: its port"},
		{"203.0.113.1:0", "", queue.ErrUnavailable, "set Listen (--node-listen) to"}, // TEST-NET-3, not of this host
		{"", "nonsense", queue.ErrInvalid, "Address (--node-address): address nonsense: missing port"},
		{"127.0.0.1:0", "nonsense", queue.ErrInvalid, "Address (--node-address): address nonsense: missing port"},
		{"127.0.0.1:0", "web1:http", queue.ErrInvalid, "Address (--node-address): address web1:http: its port"},
		{"0.0.0.0:0", "", queue.ErrInvalid, "set Address (--node-address) to"},
	} {
		for name, open := range opens {
			err := open(cluster.Config{Listen: row.listen, Address: row.address})
			if !errors.Is(err, row.kind) || !strings.Contains(err.Error(), row.says) {
				t.Errorf("%s with %+v: %v", name, row, err)
			}
		}
	}
	err := opens["Open"](cluster.Config{Listen: "nonsense", Address: "web1"})
	if err == nil || !strings.Contains(err.Error(), "address nonsense") || !strings.Contains(err.Error(), "address web1") {
		t.Errorf("with two wrong addresses, the error is %v", err)
	}
}

// TestC11_ErrorsOfListening: the error of a node that cannot listen names the setting of the address if the
// address is the reason, and not if the context of the call has ended or files cannot be opened.
func TestC11_ErrorsOfListening(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	ofSocket := func(call string, err error) error {
		return &net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError(call, err)}
	}
	for name, row := range map[string]struct {
		ctx  context.Context //nolint:containedctx // of the row
		err  error
		says bool
	}{
		"address of another host": {t.Context(), ofSocket("bind", syscall.EADDRNOTAVAIL), true},
		"port in use":             {t.Context(), ofSocket("bind", syscall.EADDRINUSE), true},
		"unknown host":            {t.Context(), &net.DNSError{Err: "no such host", Name: "web1", IsNotFound: true}, true},
		"open files":              {t.Context(), ofSocket("socket", syscall.EMFILE), false},
		"open files of the host":  {t.Context(), ofSocket("socket", syscall.ENFILE), false},
		"end of the context":      {ended, &net.DNSError{Err: "operation was canceled", Name: "web1"}, false},
	} {
		err := cluster.ListenError(row.ctx, row.err)
		if !errors.Is(err, row.err) || strings.Contains(err.Error(), "set Listen (--node-listen) to") != row.says {
			t.Errorf("%s: %v", name, err)
		}
	}
}
