package redisstore_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/redisstore"
)

var now = time.Unix(1e9, 0)

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// open opens a store, and closes it when the test ends.
func open(t *testing.T, url string, cfg redisstore.Config) *redisstore.Store {
	t.Helper()
	s, err := redisstore.Open(t.Context(), url, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closes(t, s) })
	return s
}

// closes closes a store, which may have lost the lead, or its server.
func closes(t *testing.T, s *redisstore.Store) {
	t.Helper()
	if err := s.Close(); err != nil && !errors.Is(err, queue.ErrUnavailable) {
		t.Error(err)
	}
}

// submit submits one task.
func submit(ctx context.Context, s queue.Store, id queue.ID) error {
	_, err := s.Submit(ctx, now, []queue.NewTask{{ID: id, Spec: queue.Spec{Kind: "work", Payload: id[:]}}})
	return err
}
