package pgstore_test

import (
	"testing"

	"github.com/stintgo/stint/queue/pgstore"
)

// One connection is not enough: the lease could not be renewed while the store is read, and
// another process would take the lead.
func TestC11_TwoConnectionsAtLeast(t *testing.T) {
	for url, want := range map[string]int32{
		"postgres://h/d?pool_max_conns=1":  2,
		"postgres://h/d?pool_max_conns=2":  2,
		"postgres://h/d?pool_max_conns=30": 30,
	} {
		if got, err := pgstore.PoolSize(url); got != want || err != nil {
			t.Errorf("%s: %d connections, %v; want %d", url, got, err, want)
		}
	}
}
