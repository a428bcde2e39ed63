package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue/filestore"
	"github.com/stintgo/stint/queue/storetest"
)

// crashes is a disk whose power is cut before each operation that changes it. A
// copy that shows what is left is opened at once, and held against what the
// clients had been promised by then.
type crashes struct {
	vfs.FS
	t    *testing.T
	mem  *vfs.MemFS
	keep int // percent of what is not synced that survives
	now  time.Time

	mu         sync.Mutex // one operation at a time; before ledgerMu
	rng        *rand.Rand // of the copies
	operations int
	points     int // of them that were examined

	ledgerMu sync.Mutex
	ledger   []entry
}

func newCrashes(t *testing.T, keep int, rng *rand.Rand) *crashes {
	t.Helper()
	c := &crashes{t: t, mem: vfs.NewCrashableMem(), keep: keep, now: time.Unix(1e9, 0), rng: rng}
	c.FS = filestore.Intercept(c.mem, func(op, path string, run func() error) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.operations++; c.operations%eachCrash == 0 && !t.Failed() {
			c.cut(op, path)
		}
		return run()
	})
	return c
}

func (c *crashes) note(e entry) {
	c.ledgerMu.Lock()
	defer c.ledgerMu.Unlock()
	c.ledger = append(c.ledger, e)
}

// cut examines what a crash before an operation leaves.
func (c *crashes) cut(op, path string) {
	c.points++
	c.ledgerMu.Lock()
	ledger := c.ledger // what is promised from now on need not be in the copy
	c.ledgerMu.Unlock()
	left := c.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: c.keep, RNG: c.rng})
	if err := c.examine(left, ledger); err != nil {
		// The same seed does not make the same copy: the copy itself is what helps.
		dir := c.t.ArtifactDir()
		_, cloneErr := vfs.Clone(left, vfs.Default, "store", dir+"/store")
		c.t.Errorf("crash %d, before %s %s, keeping %d %% (see %s, %v): %v", c.points, op, path, c.keep, dir, cloneErr, err)
	}
}

func (c *crashes) examine(left vfs.FS, ledger []entry) error {
	ctx := c.t.Context()
	s, err := filestore.OpenIn(left, "store", filestore.Config{})
	if err != nil {
		return err
	}
	if err := verify(ctx, s, ledger, c.keep == 100); err != nil {
		return err
	}
	if c.points%8 == 0 { // these take longer than all the rest
		if err := errors.Join(storetest.Check(ctx, s), finish(ctx, s, c.now)); err != nil {
			return err
		}
	}
	return s.Close()
}

// work opens a store, has clients use it, all at the same time, until each has made
// a number of calls, and closes it.
func (c *crashes) work(ctx context.Context, rng *rand.Rand, clients, calls int) {
	s, err := filestore.OpenIn(c, "store", filestore.Config{})
	if err != nil {
		c.t.Fatal(err)
	}
	var running sync.WaitGroup
	for i := range clients {
		cl := &client{
			store: s, name: fmt.Sprint("worker ", i), rng: rand.New(rand.NewPCG(rng.Uint64(), 0)),
			clock: func() time.Time { return c.now }, note: c.note,
		}
		running.Go(func() {
			if err := cl.run(ctx, calls); err != nil {
				c.t.Error(err)
			}
		})
	}
	running.Wait()
	c.note(entry{what: asksToClose})
	if err := s.Close(); err != nil {
		c.t.Error(err)
	}
}

// TestC6_CrashPoints cuts the power before each of more than 2,000 operations of
// the file system, from the making of the directory on, while clients work, the
// store is closed, and is opened again. Of what is not synced nothing survives, or
// half of it, in pieces of 4 KiB, or all of it.
func TestC6_CrashPoints(t *testing.T) {
	rng := seeded.Rand(t)
	points := 0
	for _, keep := range []int{0, 50, 100} {
		c := newCrashes(t, keep, rand.New(rand.NewPCG(rng.Uint64(), 0)))
		for range 3 {
			c.work(t.Context(), rng, 3, 30)
		}
		points += c.points
		t.Logf("keeping %d %%: %d crashes, %d entries", keep, c.points, len(c.ledger))
	}
	if points < 2000/eachCrash {
		t.Errorf("there were %d crashes only", points)
	}
}

// TestC6_CrashesWhileOpening cuts the power while the directory is made, and while
// it is opened again.
func TestC6_CrashesWhileOpening(t *testing.T) {
	rng := seeded.Rand(t)
	points := 0
	for range 25 {
		c := newCrashes(t, 50, rand.New(rand.NewPCG(rng.Uint64(), 0)))
		for range 2 {
			c.work(t.Context(), rng, 0, 0)
		}
		points += c.points
	}
	t.Logf("%d crashes", points)
}
