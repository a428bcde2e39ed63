package stint //nolint:testpackage // between an admission's decision and its compare-and-swap nobody outside can step

import (
	"context"
	"testing"
)

// takeFast reads the word, then the cap, and adds its slot to the word that it
// has read. A change of the limits in between must make that fail, though it
// leaves all that runs and waits as it is: otherwise a slot is taken above a cap
// after the call that lowered it has returned.
func TestB5_AdmissionUnderOldLimitsFails(t *testing.T) {
	for name, change := range map[string]func(s Scheduler){
		"SetCaps": func(s Scheduler) { s.SetCaps(Caps{Normal: 1}) },
		"Resize":  func(s Scheduler) { s.Resize(1) },
	} {
		t.Run(name, func(t *testing.T) {
			s := New(2, Config{})
			if err := s.Acquire(context.Background()); err != nil {
				t.Fatal(err)
			}
			c, tier := s.c, Normal.index()
			old := c.word.Load()
			if uint32(old) >= c.caps[tier].Load() {
				t.Fatal("no slot is free under the old limits")
			}
			change(s)
			if c.word.CompareAndSwap(old, old+1) {
				t.Errorf("%d slots were taken, the change allows 1", c.running())
			}
			if s.TryAcquire() {
				t.Error("a slot was taken under the new limits")
			}
			s.Release()
		})
	}
}
