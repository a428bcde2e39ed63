//go:build linux

package shm_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/shm"
)

// All processes that open the region run at most 16 tasks together, and each of
// them at most 4.
func ExampleRegion_Slots() {
	dir, err := os.MkdirTemp("/dev/shm", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	region, err := shm.Open(filepath.Join(dir, "io"), shm.Geometry{Slots: []int{16}})
	if err != nil {
		log.Fatal(err)
	}
	defer region.Close()

	s := stint.New(4, stint.Config{Slots: region.Slots(0)})
	ctx := stint.WithPriority(context.Background(), stint.High)
	sum, err := stint.Run(ctx, s, func(context.Context) (int, error) {
		u := s.Stats()
		return u.Running, nil
	})
	fmt.Println(sum, err)
	// Output: 1 <nil>
}

// All processes that open the region get a million tokens a second together, and
// this one at most a tenth of that.
func ExampleRegion_Bucket() {
	dir, err := os.MkdirTemp("/dev/shm", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	region, err := shm.Open(filepath.Join(dir, "bytes"), shm.Geometry{Rates: []shm.Rate{{PerSecond: 1e6}}})
	if err != nil {
		log.Fatal(err)
	}
	defer region.Close()

	l := stint.NewLimiter(1e5, stint.LimiterConfig{Bucket: region.Bucket(0)})
	fmt.Println(l.Wait(context.Background(), 4096), l.Stats().Shared.Rate)
	// Output: <nil> 1e+06
}

// After a process has died while it held the lock, the next holder must check the data
// that the lock protects.
func ExampleMutex() {
	dir, err := os.MkdirTemp("/dev/shm", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	region, err := shm.Open(filepath.Join(dir, "lock"), shm.Geometry{Mutexes: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer region.Close()

	m := region.Mutex(0)
	abandoned, err := m.Lock(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	if abandoned {
		fmt.Println("repair what the lock protects")
	}
	fmt.Println("locked")
	fmt.Println(m.Unlock(), m.Unlock())
	// Output:
	// locked
	// <nil> shm: the mutex is not locked by this process
}
