package redisstore_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/stintgo/stint/internal/freeport"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/redisstore"
)

// closing returns the address of a listener that closes each connection.
func closing(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var accepts sync.WaitGroup
	accepts.Go(func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			_, _ = c.Read(make([]byte, 1<<10)) // or it would be reset
			_ = c.Close()
		}
	})
	t.Cleanup(func() { _ = l.Close(); accepts.Wait() })
	return l.Addr().String()
}

// TestC11_RefusedServers: what cannot be used is refused with the reason and the remedy, and
// without the password.
func TestC11_RefusedServers(t *testing.T) {
	server := newServer(t, "--appendonly", "no", "--requirepass", "secret")
	replica := newReplica(t, server, "--masterauth", "secret")
	url := "redis://:secret@" + server.addr
	raw := redis.NewClient(&redis.Options{Network: "unix", Addr: server.socket(), Password: "secret"})
	t.Cleanup(func() { _ = raw.Close() })
	ctx := t.Context()
	raw.HSet(ctx, "{newer}:leader", "format", 9)
	raw.Set(ctx, "{type}:rows:t", "x", 0)
	raw.HSet(ctx, "{fields}:leader", "name", "x")
	raw.HSet(ctx, "{headless}:rows:t", "t1", "x")
	raw.Do(ctx, "ACL", "SETUSER", "reader", "on", ">secret", "~*", "+@read", "+@connection")
	free, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, url, prefix string
		want              error
		says              string
	}{
		{"a newer format", url, "newer", queue.ErrUnavailable, "format 9"},
		{"a key of another type", url, "type", queue.ErrUnavailable, "{type}:rows:t is a string of another program"},
		{"a hash of another program", url, "fields", queue.ErrUnavailable, "choose another Prefix"},
		{"rows without a leader", url, "headless", queue.ErrUnavailable, "the server has lost some"},
		{"no password", server.url(), "", queue.ErrUnavailable, "requires a password: add it"},
		{"a wrong password", "redis://:secret1@" + server.addr, "", queue.ErrUnavailable, "refuses the user or the password"},
		{"a user without write commands", "redis://reader:secret@" + server.addr, "", queue.ErrUnavailable, "ACL SETUSER"},
		{"a missing database", url + "/99", "", queue.ErrUnavailable, "no such database"},
		{"a read-only replica", replica.url(), "", queue.ErrUnavailable, "read-only replica: name its primary"},
		{"another program", "redis://:secret@" + closing(t), "", queue.ErrUnavailable, "is not Redis"},
		{"no server", "redis://:secret@" + free, "", queue.ErrUnavailable, "cannot be reached: start it"},
		{"an invalid port", "redis://:secret@host:port", "", queue.ErrInvalid, "port"},
		{"an invalid database", "redis://:secret@host/x", "", queue.ErrInvalid, "database"},
		{"an unknown parameter", "redis://:secret@host?wait=1", "", queue.ErrInvalid, "wait"},
		{"another scheme", "http://:secret@host", "", queue.ErrInvalid, "scheme"},
		{"a database of a cluster", "redis://:secret@host/3?addr=other:1", "", queue.ErrInvalid, "database"},
		{"no URL", "", "", queue.ErrInvalid, "redis://user:password@host:6379/0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), time.Second)
			defer stop()
			s, err := redisstore.Open(ctx, test.url, redisstore.Config{Prefix: test.prefix})
			if err == nil {
				t.Fatal("it opens: ", s.Close())
			}
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v; want %v with %q", err, test.want, test.says)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the message has the password: %v", err)
			}
		})
	}
}

// TestC6_Eviction: a server that removes keys by itself is refused, and the lead is free.
func TestC6_Eviction(t *testing.T) {
	server := newServer(t, "--appendonly", "no", "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	_, err := redisstore.Open(t.Context(), server.url(), redisstore.Config{})
	if !errors.Is(err, queue.ErrUnavailable) || !strings.Contains(err.Error(), "set maxmemory-policy noeviction") {
		t.Errorf("Open returns %v", err)
	}
	server.raw(t).ConfigSet(t.Context(), "maxmemory-policy", "volatile-lru")
	open(t, server.url(), redisstore.Config{})
}

func TestOpen_InvalidConfig(t *testing.T) {
	_, err := redisstore.Open(t.Context(), "redis://host", redisstore.Config{
		Prefix: "{x}", Lease: time.Millisecond, Replicas: -1,
		MaxPayload: -1, MaxResult: -1, MaxCheckpoint: -1, WatchBuffer: -1,
	})
	if !errors.Is(err, queue.ErrInvalid) {
		t.Fatal(err)
	}
	for _, name := range []string{
		"Prefix", "Lease", "Replicas", "MaxPayload", "MaxResult", "MaxCheckpoint", "WatchBuffer",
	} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("the error does not name %s: %v", name, err)
		}
	}
}

// TestDescribe: messages name the server without what is secret. Two databases have two names.
func TestDescribe(t *testing.T) {
	for url, want := range map[string]string{
		"redis://user:secret@host":                       "redis://host",
		"rediss://:secret@host:1/2?dial_timeout=1s":      "rediss://host:1/2",
		"unix:///run/redis.sock?db=1":                    "unix:///run/redis.sock?db=1",
		"unix:///run/redis.sock?db=0&pool_size=9":        "unix:///run/redis.sock?db=0",
		"redis://:secret@a:1?addr=b:2&addr=c:3":          "the cluster a:1, b:2, c:3",
		"redis://u:secret@a:1/2?master_name=m&addr=b:2":  "database 2 of m of the Sentinels a:1, b:2",
		"redis://u:secret@a:1/0?master_name=m&addr=b:2":  "m of the Sentinels a:1, b:2",
		"redis://a?master_name=m&sentinel_password=secr": "m of the Sentinels a",
	} {
		if got, err := redisstore.Describe(url); err != nil || got != want {
			t.Errorf("%s is %q, %v; want %q", url, got, err, want)
		}
	}
}

// answer is an error of a server.
type answer string

func (a answer) Error() string { return string(a) }

// RedisError marks an error of a server.
func (a answer) RedisError() {}

// TestExplain: errors that a test cannot cause easily, and those in a script of Redis 6.
func TestExplain(t *testing.T) {
	for text, want := range map[string]string{
		"ERR something else":                                                               "ERR something else",
		"MISCONF Errors writing to the AOF file":                                           "cannot write its data to disk",
		"LOADING Redis is loading the dataset in memory":                                   "still loading",
		"NOREPLICAS Not enough good replicas to write.":                                    "min-replicas-to-write",
		"CLUSTERDOWN Hash slot not served":                                                 "the cluster is down",
		"MOVED 3999 127.0.0.1:6381":                                                        "add the parameter addr",
		"ERR Error running script (call to f_1): @user_script:1: -OOM command not allowed": "raise maxmemory",
		"ERR Error running script (call to f_1): @user_script:1: -READONLY You":            "read-only replica",
		"ERR Error running script (call to f_1): @user_script:14: WRONGTYPE Operation":     "choose another Prefix",
	} {
		if got := redisstore.Explain(answer(text)).Error(); !strings.Contains(got, want) || !strings.Contains(got, text) {
			t.Errorf("%q is explained by %q, want %q", text, got, want)
		}
	}
}
