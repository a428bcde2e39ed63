package sched //nolint:testpackage // a caller cannot step between an admission's decision and its compare-and-swap

import (
	"context"
	"testing"
)

// take reads the word, then the cap, and then adds its slot to the word that it read. A
// change of the limits in between must make the compare-and-swap fail, even if it leaves
// all that runs and waits as it is. Otherwise a slot would be taken above a cap after the
// call that lowered it has returned.
func TestB5_AdmissionUnderOldLimitsFails(t *testing.T) {
	const normal = 3
	for name, change := range map[string]func(e *Engine){
		"SetCaps": func(e *Engine) { e.Limits().SetCaps([Tiers]int{normal: 1}) },
		"Resize":  func(e *Engine) { e.Limits().Resize(1) },
	} {
		t.Run(name, func(t *testing.T) {
			e := New(Config{Limit: 2})
			p, err := e.Take(context.Background(), Ask{Weight: 1, Tier: normal})
			if err != nil {
				t.Fatal(err)
			}
			g := &e.gate
			old := g.word.Load()
			if uint32(old) >= g.caps[normal].Load() {
				t.Fatal("no slot is free under the old limits")
			}
			change(e)
			if g.word.CompareAndSwap(old, old+1) {
				t.Errorf("%d slots were taken, the change allows 1", g.running())
			}
			if g.take(normal) {
				t.Error("a slot was taken under the new limits")
			}
			p.Release()
		})
	}
}
