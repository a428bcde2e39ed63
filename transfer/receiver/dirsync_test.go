package receiver_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint/transfer/receiver"
)

func openDirSync(tb testing.TB, fault func(op string, bytes int) (done int, err error)) receiver.DirSync {
	tb.Helper()
	d, err := receiver.OpenDirSync(tb.TempDir(), fault)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := d.Close(); err != nil {
			tb.Error(err)
		}
	})
	return d
}

// TestDirSync_Shares: callers that come while a sync runs share the next one and its error, and do not
// return on the one that began before them.
func TestDirSync_Shares(t *testing.T) {
	errFirst, errSecond := errors.New("first"), errors.New("second")
	for _, c := range []struct {
		name    string
		results []error // of the syncs, in their order
	}{
		{"success", []error{nil, nil}},
		{"the first fails", []error{errFirst, nil}},
		{"the second fails", []error{nil, errSecond}},
		{"both fail", []error{errFirst, errSecond}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := 0
				results := make(chan error)
				d := openDirSync(t, func(string, int) (int, error) {
					began++
					return 0, <-results
				})
				first := make(chan error, 1)
				go func() { first <- d.Sync() }()
				synctest.Wait()
				const later = 9
				others := make(chan error, later)
				for range later {
					go func() { others <- d.Sync() }()
				}
				synctest.Wait()
				if began != 1 {
					t.Fatalf("%d syncs run at once", began)
				}
				results <- c.results[0]
				if err := <-first; !errors.Is(err, c.results[0]) {
					t.Errorf("the first caller got %v", err)
				}
				synctest.Wait()
				if len(others) != 0 || began != 2 {
					t.Fatalf("after the first of %d syncs %d callers returned that came while it ran", began, len(others))
				}
				results <- c.results[1]
				for range later {
					if err := <-others; !errors.Is(err, c.results[1]) {
						t.Errorf("a caller that came later got %v", err)
					}
				}
				go func() { results <- nil }()
				if err := d.Sync(); err != nil || began != 3 {
					t.Errorf("a sync after all others, number %d, got %v", began, err)
				}
			})
		})
	}
}

// TestDirSync_CoversItsCallers: whatever the order in which callers come, each returns after a sync that
// began when its name was there.
func TestDirSync_CoversItsCallers(t *testing.T) {
	var named, covered, syncs atomic.Int64
	d := openDirSync(t, func(string, int) (int, error) {
		syncs.Add(1)
		covered.Store(named.Load())
		return 0, nil
	})
	const callers, times = 16, 200
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range times {
				mine := named.Add(1)
				if err := d.Sync(); err != nil {
					t.Error(err)
				}
				if last := covered.Load(); last < mine {
					t.Errorf("name %d is durable after a sync of the names up to %d", mine, last)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d syncs for %d names", syncs.Load(), callers*times)
}
