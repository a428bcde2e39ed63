//go:build linux

package shm_test

import (
	"path/filepath"
	"testing"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/shm"
)

// BenchmarkB8_FreeSlot measures an uncontended slot, for profiles. The suite shared of
// bench compares it with other implementations.
func BenchmarkB8_FreeSlot(b *testing.B) {
	open := func(b *testing.B) *shm.Slots {
		b.Helper()
		r, err := shm.Open(filepath.Join(b.TempDir(), "region"), shm.Geometry{Slots: []int{16}})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { r.Close() })
		return r.Slots(0)
	}
	b.Run("alone", func(b *testing.B) {
		slots := open(b)
		slots.Bind(func() {}, nil)
		for b.Loop() {
			grant, err := slots.TryAcquire(stint.Normal)
			if err != nil {
				b.Fatal(err)
			}
			slots.Release(grant)
		}
	})
	b.Run("scheduler", func(b *testing.B) {
		s := stint.New(16, stint.Config{Slots: open(b)})
		for b.Loop() {
			p, err := s.Acquire(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			p.Release()
		}
	})
}
