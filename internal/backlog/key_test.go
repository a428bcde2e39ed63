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
	b.Keys().Block("k", rate)
	b.Keys().Block("k", rate)
	if b.Keys().Blocked("k") != rate || b.Keys().HasRoom("k") || b.Admits(6, "k", 1, 0) {
		t.Error("the key is blocked, but has room")
	}
	if got := b.Keys().Held(); got != 3 {
		t.Errorf("keys hold %d entries, want 3", got)
	}
	if e := b.Peek(0); e == nil || e.Key() != "" {
		t.Errorf("%v is next, want the entry without a key", e)
	}
	b.Keys().Unblock("k", rate)
	b.Keys().Unblock("k", rate)
	if b.Keys().Blocked("k") != 0 || b.Keys().Held() != 0 {
		t.Errorf("unblocked, but keys hold %d entries", b.Keys().Held())
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
		{"blocked, too", func() { b.Keys().Block("k", rate) }, false},
		{"only blocked", func() { b.Keys().Finish("k") }, false},
		{"no limit at all", func() { b.Keys().SetPerKey(0) }, false},
		{"free", func() { b.Keys().Unblock("k", rate) }, true},
		{"blocked anew", func() { b.Keys().Block("k", rate) }, false},
	} {
		c.change()
		if got := b.Peek(0) != nil; got != c.starts {
			t.Errorf("%s: starts %v, want %v", c.name, got, c.starts)
		}
		if got := b.Keys().Held() == 0; got != c.starts {
			t.Errorf("%s: keys hold %d entries", c.name, b.Keys().Held())
		}
	}
}

func TestBlock_KeyIsRememberedWhileBlocked(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 10})
	b.Keys().Block("", rate) // entries without a key have no key to block
	b.Keys().Unblock("unknown", rate)
	if n := b.Keys().Len(); n != 0 || b.Keys().Blocked("") != 0 {
		t.Fatalf("%d keys are remembered for nothing", n)
	}
	b.Keys().Block("k", rate)
	b.Keys().Admit("k")
	b.Keys().Finish("k")
	e := &backlog.Entry[int]{}
	b.Push(e, backlog.Arrival{Tier: 3, Key: "k", Weight: 1})
	b.Remove(e)
	if b.Keys().Blocked("k") != rate || b.Keys().Len() != 1 {
		t.Error("a blocked key is forgotten when it is idle")
	}
	b.Keys().Unblock("k", rate)
	if n := b.Keys().Len(); n != 0 {
		t.Errorf("%d keys are remembered when all is idle and free", n)
	}
}

func TestBlock_Why(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 10, PerKey: 2})
	e := &backlog.Entry[int]{}
	b.Keys().Block("k", rate)
	b.Push(e, backlog.Arrival{Tier: 3, Key: "k", Weight: 1})
	if r := b.Why(e, 0); !r.Blocked || r.AtLimit {
		t.Errorf("queued: %+v, want it blocked and not at its limit", r)
	}
	if r := b.WhyNot(3, "k", 1, 0); !r.Blocked || r.AtLimit {
		t.Errorf("arrival: %+v, want it blocked and not at its limit", r)
	}
	b.Keys().Unblock("k", rate)
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
	b.Keys().Block("blocked", rate)
	for range 100 {
		take(t, b, 0)
	}
	b.Keys().Unblock("blocked", rate)
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
	b.Keys().Block("k", rate)
	b.Keys().Block("k", other)
	b.Keys().Unblock("k", rate)
	if b.Keys().Blocked("k") != other || b.Peek(0) != nil {
		t.Errorf("with one cause left the key is blocked for %d, and %v is next", b.Keys().Blocked("k"), b.Peek(0))
	}
	b.Keys().Unblock("k", rate)
	b.Keys().Unblock("k", other)
	if b.Keys().Blocked("k") != 0 || b.Peek(0) == nil {
		t.Error("with no cause left the key is blocked")
	}
}

// A backlog limits keys also if only single keys have a limit.
func TestA5_LimitsKeys(t *testing.T) {
	for _, c := range []struct {
		perKey         int
		limits, shared map[string]int
		want           bool
	}{
		{0, nil, nil, false},
		{2, nil, nil, true},
		{0, map[string]int{"k": 1}, nil, true},
		{0, nil, map[string]int{"k": 1}, true},
	} {
		b := backlog.New[int](backlog.Config{Max: 10, PerKey: c.perKey, KeyLimits: c.limits, SharedLimits: c.shared})
		if got := b.Keys().Limited(); got != c.want {
			t.Errorf("a limit of %d per key, of %v for single ones and of %v shared: limits keys %v, want %v",
				c.perKey, c.limits, c.shared, got, c.want)
		}
	}
}
