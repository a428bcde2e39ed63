package csync_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stintgo/stint/csync"
)

// Every error of the package says once where it comes from.
func TestD2_ErrorsNameThePackageOnce(t *testing.T) {
	b := csync.NewBarrier(2, nil)
	b.Break(errors.New("gone"))
	_, broken := b.Wait(context.Background())
	var c csync.Chan[int]
	c.Close()
	for _, err := range []error{
		csync.NewSemaphore(1).Acquire(context.Background(), 2), broken, c.Send(context.Background(), 1),
		csync.ErrBroken, csync.ErrClosed, csync.ErrTooHeavy,
	} {
		if !strings.HasPrefix(err.Error(), "csync: ") || strings.Count(err.Error(), "csync:") != 1 {
			t.Errorf("%q should begin with csync:, once", err)
		}
	}
}
