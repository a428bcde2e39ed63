//go:build linux

package shm_test

import (
	"context"
	"testing"

	"github.com/stintgo/stint"
)

// mustTry takes a slot that is free.
func mustTry(t *testing.T, s stint.Scheduler) *stint.Permit {
	t.Helper()
	p, ok := s.TryAcquire(t.Context())
	if !ok {
		t.Fatal("a free slot was refused")
	}
	return &p
}

// pending is a call of Acquire in a goroutine of its own.
type pending struct {
	answer chan error   // delivers the error of the call
	permit stint.Permit // valid once answer has delivered nil
}

// goAcquire calls Acquire in a goroutine of its own.
func goAcquire(ctx context.Context, s stint.Scheduler) *pending {
	w := &pending{answer: make(chan error, 1)}
	go func() {
		var err error
		w.permit, err = s.Acquire(ctx)
		w.answer <- err
	}()
	return w
}
