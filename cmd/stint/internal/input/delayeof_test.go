package input_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/cmd/stint/internal/input"
)

// A signal shortly before or after the end of the input is an error of it, and not its end.
func TestDelayEOF(t *testing.T) {
	stopped := errors.New("stopped")
	for name, row := range map[string]struct {
		after time.Duration // the signal comes
		want  error
	}{
		"no signal": {time.Hour, nil}, "before": {0, stopped}, "after": {50 * time.Millisecond, stopped},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancelCause(t.Context())
				defer time.AfterFunc(row.after, func() { stop(stopped) }).Stop()
				synctest.Wait()
				text, err := io.ReadAll(input.DelayEOF(ctx, strings.NewReader("text")))
				if string(text) != "text" || !errors.Is(err, row.want) {
					t.Errorf("it reads %q, %v; want %v", text, err, row.want)
				}
			})
		})
	}
}
