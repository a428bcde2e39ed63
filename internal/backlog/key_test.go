package backlog_test

import (
	"testing"

	"github.com/stintgo/stint/internal/backlog"
)

// The causes of blocks.
const (
	rate backlog.Cause = 1 << iota
	other
)

func TestBlock_NothingOfTheKeyStarts(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 10, PerKey: 1})
	fillClass(b, 3, "k", 0, 2)
	fillClass(b, 5, "k", 1, 1)
	fill(b, 0, "", 1)
	b.Block("k", rate)
	b.Block("k", rate)
	if b.Blocked("k") != rate || b.KeyHasRoom("k") || b.Admits(6, "k", 1, 0) {
		t.Error("the key is blocked, but has room")
	}
	if got := b.HeldByKey(); got != 3 {
		t.Errorf("keys hold %d entries, want 3", got)
	}
	if e := b.Peek(0); e == nil || e.Key() != "" {
		t.Errorf("%v is next, want the entry without a key", e)
	}
	b.Unblock("k", rate)
	b.Unblock("k", rate)
	if b.Blocked("k") != 0 || b.HeldByKey() != 0 {
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
		{"blocked, too", func() { b.Block("k", rate) }, false},
		{"only blocked", func() { b.Finish("k") }, false},
		{"no limit at all", func() { b.SetPerKey(0) }, false},
		{"free", func() { b.Unblock("k", rate) }, true},
		{"blocked anew", func() { b.Block("k", rate) }, false},
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
	b.Block("", rate) // entries without a key have no key to block
	b.Unblock("unknown", rate)
	if n := b.Keys(); n != 0 || b.Blocked("") != 0 {
		t.Fatalf("%d keys are remembered for nothing", n)
	}
	b.Block("k", rate)
	b.Admit("k")
	b.Finish("k")
	e := &backlog.Entry[int]{}
	b.Push(e, 3, "k", 1)
	b.Remove(e)
	if b.Blocked("k") != rate || b.Keys() != 1 {
		t.Error("a blocked key is forgotten when it is idle")
	}
	b.Unblock("k", rate)
	if n := b.Keys(); n != 0 {
		t.Errorf("%d keys are remembered when all is idle and free", n)
	}
}

func TestBlock_Why(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 10, PerKey: 2})
	e := &backlog.Entry[int]{}
	b.Block("k", rate)
	b.Push(e, 3, "k", 1)
	if r := b.Why(e, 0); !r.Blocked || r.AtLimit {
		t.Errorf("queued: %+v, want it blocked and not at its limit", r)
	}
	if r := b.WhyNot(3, "k", 1, 0); !r.Blocked || r.AtLimit {
		t.Errorf("arrival: %+v, want it blocked and not at its limit", r)
	}
	b.Unblock("k", rate)
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
	b.Block("blocked", rate)
	for range 100 {
		take(t, b, 0)
	}
	b.Unblock("blocked", rate)
	got := map[string]int{}
	for range 40 {
		got[take(t, b, 0, 1, 2)]++
	}
	if got["blocked"] > 21 {
		t.Errorf("after the block the key took %d of 40 turns, want half", got["blocked"])
	}
}

// A key is blocked as long as there is a cause.
func TestBlock_Causes(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 10})
	fill(b, 3, "k", 1)
	b.Block("k", rate)
	b.Block("k", other)
	b.Unblock("k", rate)
	if b.Blocked("k") != other || b.Peek(0) != nil {
		t.Errorf("with one cause left the key is blocked for %d, and %v is next", b.Blocked("k"), b.Peek(0))
	}
	b.Unblock("k", rate)
	b.Unblock("k", other)
	if b.Blocked("k") != 0 || b.Peek(0) == nil {
		t.Error("with no cause left the key is blocked")
	}
}

// A backlog limits keys also if only single keys have a limit.
func TestA5_LimitsKeys(t *testing.T) {
	for _, c := range []struct {
		perKey int
		limits map[string]int
		want   bool
	}{
		{0, nil, false},
		{2, nil, true},
		{0, map[string]int{"k": 1}, true},
	} {
		b := backlog.New[int](backlog.Config{Max: 10, PerKey: c.perKey, KeyLimits: c.limits})
		if got := b.LimitsKeys(); got != c.want {
			t.Errorf("a limit of %d per key and of %v for single ones: limits keys %v, want %v",
				c.perKey, c.limits, got, c.want)
		}
	}
}
