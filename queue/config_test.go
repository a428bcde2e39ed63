package queue_test

import (
	"errors"
	"testing"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
)

// The name of a worker is shown to people, so New refuses one with control characters.
func TestC1_NamesOfWorkers(t *testing.T) {
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("New panics with %v, want ErrInvalid", err)
		}
	}()
	store := memstore.New(memstore.Config{})
	defer store.Close()
	queue.New(store, queue.Config{Worker: "w\x1b[2J"})
}
