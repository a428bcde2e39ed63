package queue_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
)

// Handle panics for each misuse, and names it.
func TestC1_HandlePanicsWithTheReason(t *testing.T) {
	handler := func(context.Context, *queue.Attempt) error { return nil }
	for want, misuse := range map[string]func(q *queue.Queue){
		"the kind is empty":         func(q *queue.Queue) { q.Handle("", handler) },
		`the kind "k" is nil`:       func(q *queue.Queue) { q.Handle("k", nil) },
		`"k" already has a handler`: func(q *queue.Queue) { q.Handle("k", handler); q.Handle("k", handler) },
		`"k" is set after Run`: func(q *queue.Queue) {
			ended, end := context.WithCancel(t.Context())
			end()
			_ = q.Run(ended, stint.New(1, stint.Config{}))
			q.Handle("k", handler)
		},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Errorf("the panic is %q, want one with %q", got, want)
				}
			}()
			misuse(queue.New(memstore.New(memstore.Config{}), queue.Config{}))
		}()
	}
}
