package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/redisstore"
)

// TestC11_OneProcessLeads: a second process gets the name of the first, and leads when the
// lease of the first has ended. From then on the first one changes nothing.
func TestC11_OneProcessLeads(t *testing.T) {
	server, prefix := sharedServer(t), newPrefix()
	var ids queue.IDs
	first := open(t, server.url(), redisstore.Config{Prefix: prefix, Name: "the first", Lease: time.Minute})
	kept := accepts(t, first, &ids)
	_, err := redisstore.Open(t.Context(), server.url(), redisstore.Config{Prefix: prefix})
	if !errors.Is(err, queue.ErrLed) || !errors.Is(err, queue.ErrUnavailable) ||
		!strings.Contains(err.Error(), "the first leads since") {
		t.Fatalf("the second process gets %v", err)
	}
	endLease(t, server.raw(t), prefix)
	second := open(t, server.url(), redisstore.Config{Prefix: prefix})
	refuses(t, first, &ids, "another process leads")
	<-first.Lost()
	claim := queue.Claim{Worker: "w", Kinds: []string{"work"}, Max: 1, Lease: time.Hour}
	if _, err := first.Claim(t.Context(), now, claim); !errors.Is(err, queue.ErrUnavailable) {
		t.Errorf("a claim from the first process: %v", err)
	}
	if n := find(t, second, kept); n != 1 {
		t.Errorf("the store has %d tasks, want 1", n)
	}
	if err := first.Close(); !errors.Is(err, queue.ErrLed) {
		t.Errorf("the first process closes with %v", err)
	}
	accepts(t, second, &ids)
	closes(t, second)
	open(t, server.url(), redisstore.Config{Prefix: prefix}) // at once: the second has ended its lease
}

// TestC11_ManyProcessesStartAtOnce: one of them leads.
func TestC11_ManyProcessesStartAtOnce(t *testing.T) {
	server, prefix := sharedServer(t), newPrefix()
	var mu sync.Mutex
	var opened []*redisstore.Store
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			s, err := redisstore.Open(t.Context(), server.url(), redisstore.Config{Prefix: prefix, Lease: time.Minute})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				opened = append(opened, s)
			} else if !errors.Is(err, queue.ErrLed) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(opened) != 1 {
		t.Errorf("%d processes lead", len(opened))
	}
	for _, s := range opened {
		closes(t, s)
	}
}

// TestC11_LeaseEnds: when a leader does not reach the server any more, another one takes
// over after its lease.
func TestC11_LeaseEnds(t *testing.T) {
	server, prefix := sharedServer(t), newPrefix()
	p := newProxy(t, server.socket())
	first := open(t, p.url(), redisstore.Config{Prefix: prefix, Lease: 300 * time.Millisecond})
	var ids queue.IDs
	kept := accepts(t, first, &ids)
	p.close()
	var second *redisstore.Store
	until(t, "the second process leads", func() (led bool) {
		var err error
		second, err = redisstore.Open(t.Context(), server.url(), redisstore.Config{Prefix: prefix})
		if err != nil && !errors.Is(err, queue.ErrLed) {
			t.Fatal(err)
		}
		return err == nil
	})
	find(t, second, kept)
	closes(t, second)
}

// TestC11_SilentConnectionAfterLead: Open returns although the connection that asks the server for
// its configuration is silent. Its process leads already, and renews its lease.
func TestC11_SilentConnectionAfterLead(t *testing.T) {
	p := newProxy(t, newServer(t).socket())
	p.muteAfter("appendfsync")
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	s, err := redisstore.Open(ctx, p.url(), redisstore.Config{Patience: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	accepts(t, s, new(queue.IDs))
	closes(t, s)
}

// TestC11_Cluster: all keys of a store are on one node.
func TestC11_Cluster(t *testing.T) {
	server := newServer(t, "--appendonly", "no", "--cluster-enabled", "yes")
	raw := server.raw(t)
	if err := raw.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	until(t, "the cluster is up", func() bool {
		return strings.Contains(raw.ClusterInfo(t.Context()).Val(), "cluster_state:ok")
	})
	url := server.url() + "?addr=" + server.addr
	s := open(t, url, redisstore.Config{})
	var ids queue.IDs
	first := accepts(t, s, &ids)
	if _, err := s.Submit(t.Context(), now, []queue.NewTask{{ // several hashes in one script
		ID: ids.New(now), Spec: queue.Spec{Kind: "work", Options: queue.Options{Unique: "u"}},
	}}); err != nil {
		t.Fatal(err)
	}
	closes(t, s)
	if n := find(t, open(t, url, redisstore.Config{}), first); n != 2 {
		t.Errorf("there are %d tasks, want 2", n)
	}
}

// TestC6_Replicas: with Replicas, a task is accepted when a replica has it. Without one,
// nothing is accepted until it is back. A replica that replaces the server has everything.
func TestC6_Replicas(t *testing.T) {
	primary := newServer(t, "--appendonly", "no", "--repl-diskless-sync-delay", "0")
	replica := newReplica(t, primary)
	back := make(signal, 1)
	until(t, "the replica is connected", func() bool {
		return strings.Contains(primary.raw(t).Info(t.Context(), "replication").Val(), "state=online")
	})
	s := open(t, primary.url(), redisstore.Config{Replicas: 1, Logger: slog.New(back)})
	var ids queue.IDs
	kept := []queue.ID{accepts(t, s, &ids)}
	replica.kill()
	late := ids.New(now)
	if err := submit(t.Context(), s, late); !errors.Is(err, queue.ErrUnavailable) ||
		!strings.Contains(err.Error(), "0 of 1 replicas") {
		t.Errorf("without a replica, a submit returns %v", err)
	}
	replica.again(t)
	<-back
	kept = append(kept, late, accepts(t, s, &ids))
	primary.kill()
	raw := replica.raw(t)
	if err := raw.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	endLease(t, raw, "stint")
	find(t, open(t, replica.url(), redisstore.Config{}), kept...)
}

// TestC11_Sentinel: the store follows a failover to a replica, and nothing that both had is
// lost.
func TestC11_Sentinel(t *testing.T) {
	primary := newServer(t, "--appendonly", "no", "--repl-diskless-sync-delay", "0")
	replica := newReplica(t, primary)
	host, port, err := net.SplitHostPort(primary.addr)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	config := fmt.Sprintf("sentinel monitor main %s %s 1\nsentinel down-after-milliseconds main 500\n", host, port)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	sentinel, err := startWith([]string{file, "--sentinel"})
	if sentinel != nil {
		t.Cleanup(sentinel.remove)
	}
	if err != nil {
		t.Fatal(err)
	}
	watch := sentinel.raw(t)
	until(t, "Sentinel knows the replica", func() bool {
		list, _ := watch.Do(t.Context(), "SENTINEL", "REPLICAS", "main").Slice()
		if len(list) == 0 {
			return false
		}
		text := fmt.Sprint(list[0])
		return strings.Contains(text, "master-link-status:ok") || strings.Contains(text, "master-link-status ok")
	})
	s := open(t, sentinel.url()+"?master_name=main", redisstore.Config{Replicas: 1, Lease: time.Minute})
	var ids queue.IDs
	kept := accepts(t, s, &ids)
	closes(t, s) // the other server has no replica, so that nothing more would be accepted
	s = open(t, sentinel.url()+"?master_name=main", redisstore.Config{Lease: time.Minute})
	until(t, "Sentinel begins a failover", func() bool {
		return watch.Do(t.Context(), "SENTINEL", "FAILOVER", "main").Err() == nil
	})
	until(t, "the replica is the primary", func() bool {
		return strings.Contains(replica.raw(t).Info(t.Context(), "replication").Val(), "role:master")
	})
	until(t, "the store accepts tasks", func() bool {
		err := submit(t.Context(), s, ids.New(now))
		if err != nil && !errors.Is(err, queue.ErrUnavailable) {
			t.Fatal(err)
		}
		return err == nil
	})
	if n := find(t, s, kept); n < 2 {
		t.Errorf("there are %d tasks, want 2 or more", n)
	}
}
