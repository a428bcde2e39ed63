package backlog_test

import (
	"testing"

	"github.com/stintgo/stint/internal/backlog"
)

func TestBlock_NothingOfTheKeyStarts(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 10, PerKey: 1})
	fillClass(b, 3, "k", 0, 2)
	fillClass(b, 5, "k", 1, 1)
	fill(b, 0, "", 1)
	b.Block("k")
	b.Block("k")
	if !b.Blocked("k") || b.KeyHasRoom("k") || b.Admits(6, "k", 1, 0) {
		t.Error("the key is blocked, but has room")
	}
	if got := b.HeldByKey(); got != 3 {
		t.Errorf("keys hold %d entries, want 3", got)
	}
	if e := b.Peek(0); e == nil || e.Key() != "" {
		t.Errorf("%v is next, want the entry without a key", e)
	}
	b.Unblock("k")
	b.Unblock("k")
	if b.Blocked("k") || b.HeldByKey() != 0 {
		t.Errorf("unblocked, but keys hold %d entries", b.HeldByKey())
	}
	if e := b.Peek(0); e == nil || e.Key() != "k" || e.Tier() != 5 {
		t.Errorf("%v is next, want the highest of the key", e)
	}
}

// A block and a limit hold a key each for itself: it starts when both are gone.
func TestBlock_IsIndependentOfTheLimit(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 10, PerKey: 1})
	fill(b, 3, "k", 2)
	b.Start(b.Peek(0))
	for _, c := range []struct {
		name   string
		change func()
		starts bool
	}{
		{"at the limit", func() {}, false},
		{"blocked, too", func() { b.Block("k") }, false},
		{"only blocked", func() { b.Finish("k") }, false},
		{"no limit at all", func() { b.SetPerKey(0) }, false},
		{"free", func() { b.Unblock("k") }, true},
		{"blocked anew", func() { b.Block("k") }, false},
	} {
		c.change()
		if got := b.Peek(0) != nil; got != c.starts {
			t.Errorf("%s: starts %v, want %v", c.name, got, c.starts)
		}
		if got := b.HeldByKey() == 0; got != c.starts {
			t.Errorf("%s: keys hold %d entries", c.name, b.HeldByKey())
		}
	}
}

func TestBlock_KeyIsRememberedWhileBlocked(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 10})
	b.Block("") // entries without a key have no key to block
	b.Unblock("unknown")
	if n := b.Keys(); n != 0 || b.Blocked("") {
		t.Fatalf("%d keys are remembered for nothing", n)
	}
	b.Block("k")
	b.Admit("k")
	b.Finish("k")
	e := &backlog.Entry[int]{}
	b.Push(e, 3, "k", 1)
	b.Remove(e)
	if !b.Blocked("k") || b.Keys() != 1 {
		t.Error("a blocked key is forgotten when it is idle")
	}
	b.Unblock("k")
	if n := b.Keys(); n != 0 {
		t.Errorf("%d keys are remembered when all is idle and free", n)
	}
}

func TestBlock_Why(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 10, PerKey: 2})
	e := &backlog.Entry[int]{}
	b.Block("k")
	b.Push(e, 3, "k", 1)
	if r := b.Why(e, 0); !r.Blocked || r.AtLimit {
		t.Errorf("queued: %+v, want it blocked and not at its limit", r)
	}
	if r := b.WhyNot(3, "k", 1, 0); !r.Blocked || r.AtLimit {
		t.Errorf("arrival: %+v, want it blocked and not at its limit", r)
	}
	b.Unblock("k")
	if r := b.Why(e, 0); r.Blocked {
		t.Errorf("unblocked: %+v", r)
	}
}

// A key that was blocked has no claim on the time that it missed.
func TestBlock_GivesNoCredit(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 10})
	for class := range 3 {
		fillClass(b, 3, "blocked", class, 50)
	}
	fill(b, 3, "other", 500)
	b.Block("blocked")
	for range 100 {
		take(t, b, 0)
	}
	b.Unblock("blocked")
	got := map[string]int{}
	for range 40 {
		got[take(t, b, 0, 1, 2)]++
	}
	if got["blocked"] > 21 {
		t.Errorf("after the block the key took %d of 40 turns, want half", got["blocked"])
	}
}
