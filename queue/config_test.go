package queue_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
)

// A name of a worker that no store would take, or that cannot be printed, is refused by New.
func TestC1_NamesOfWorkers(t *testing.T) {
	store := memstore.New(memstore.Config{})
	defer store.Close()
	for _, name := range []string{"w\x1b[2J", "w\xff", strings.Repeat("w", 191)} {
		func() {
			defer func() {
				if err, ok := recover().(error); !ok || !errors.Is(err, queue.ErrInvalid) {
					t.Errorf("with the name %q, New panics with %v, want ErrInvalid", name, err)
				}
			}()
			queue.New(store, queue.Config{Worker: name})
		}()
	}
	queue.New(store, queue.Config{Worker: strings.Repeat("w", 190)})
}
