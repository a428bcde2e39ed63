package stall_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/queue/internal/stall"
)

func blocked() error { return errors.New("blocked") }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// The channel is closed while an operation has been blocked for AnswerWithin.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stall.Stall
		before := s.Channel()
		for range 2 {
			end := s.Watch(blocked)
			if time.Sleep(stall.AnswerWithin - 1); isClosed(s.Channel()) {
				t.Error("the channel is closed too early")
			}
			time.Sleep(time.Nanosecond)
			if synctest.Wait(); !isClosed(s.Channel()) {
				t.Error("the channel is open while the operation is late")
			}
			if end(); isClosed(s.Channel()) {
				t.Error("the channel is closed after the end of the operation")
			}
		}
		if !isClosed(before) {
			t.Error("a caller that waited before is not woken")
		}
		end := s.Watch(blocked)
		end()
		if time.Sleep(2 * stall.AnswerWithin); isClosed(s.Channel()) {
			t.Error("the channel is closed by an operation that ended in time")
		}
	})
}

// An operation that is slow but not blocked is waited for, until it is blocked.
func TestWatch_Slow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stall.Stall
		var isBlocked atomic.Bool
		end := s.Watch(func() error {
			if isBlocked.Load() {
				return blocked()
			}
			return nil
		})
		if time.Sleep(stall.AnswerWithin + 1); isClosed(s.Channel()) {
			t.Error("the channel is closed by an operation that is not blocked")
		}
		isBlocked.Store(true)
		if time.Sleep(stall.AnswerWithin); !isClosed(s.Channel()) {
			t.Error("the channel is open while the operation is blocked")
		}
		end()
	})
}

// Of several operations that are late, the end of one does not hide the others.
func TestWatch_Several(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s stall.Stall
		first, second, slow := s.Watch(blocked), s.Watch(blocked), s.Watch(func() error { return nil })
		time.Sleep(stall.AnswerWithin + 1)
		if first(); !isClosed(s.Channel()) {
			t.Error("the channel is open while the second operation is late")
		}
		if second(); isClosed(s.Channel()) {
			t.Error("the channel is closed while no operation is late")
		}
		slow()
	})
}
