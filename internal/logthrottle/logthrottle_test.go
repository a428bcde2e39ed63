package logthrottle_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/internal/logthrottle"
)

// newLogger logs into a text, without times.
func newLogger() (*slog.Logger, *strings.Builder) {
	text := new(strings.Builder)
	h := slog.NewTextHandler(text, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	return slog.New(logthrottle.New(h)), text
}

// An error that repeats is logged once, and then once a minute with the number of
// those in between.
func TestC6_RepeatedErrorsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, text := newLogger()
		for i := range 200 { // seconds
			log.Error("claim tasks", slog.Any("error", errors.New("no room")), slog.Int("tasks", i))
			time.Sleep(time.Second)
		}
		want := `level=ERROR msg="claim tasks" error="no room" tasks=0
level=ERROR msg="claim tasks" error="no room" tasks=60 repeated=59
level=ERROR msg="claim tasks" error="no room" tasks=120 repeated=59
level=ERROR msg="claim tasks" error="no room" tasks=180 repeated=59
`
		if text.String() != want {
			t.Errorf("the log is\n%swant\n%s", text, want)
		}
	})
}

// A record that differs in more than numbers is logged, and so is one below the level of warnings.
func TestC6_DifferentErrorsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, text := newLogger()
		for range 2 {
			log.Error("a", slog.Any("error", "x"))
			log.Error("a", slog.Any("error", "y"))
			log.Error("b", slog.Any("error", "x"))
			log.Warn("a", slog.Any("error", "x"))
			log.With(slog.Any("queue", "q")).Error("a", slog.Any("error", "x"))
			log.WithGroup("g").Error("a", slog.Any("error", "x"))
			log.Info("started")
		}
		if got, want := strings.Count(text.String(), "\n"), 6+2; got != want {
			t.Errorf("%d lines, want %d:\n%s", got, want, text)
		}
	})
}

// Very many different errors are all logged, and one that repeats among them is not
// logged each time.
func TestC6_ManyDifferentErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, text := newLogger()
		for i := range 1000 {
			log.Error("damaged", slog.Any("task", fmt.Sprint(i)))
			log.Error("no room")
			time.Sleep(time.Millisecond)
		}
		if got := strings.Count(text.String(), "damaged"); got != 1000 {
			t.Errorf("%d of 1000 different errors were logged", got)
		}
		if got := strings.Count(text.String(), "no room"); got > 10 {
			t.Errorf("the same error was logged %d times", got)
		}
	})
}
