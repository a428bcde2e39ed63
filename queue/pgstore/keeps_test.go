package pgstore_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stintgo/stint/queue/pgstore"
)

// TestC11_PostgresThatForgets: the log says what a server loses that does not sync what it
// confirms, and how to change that.
func TestC11_PostgresThatForgets(t *testing.T) {
	synced := newServer(t).DSN
	for _, row := range []struct{ dsn, says string }{
		{sharedServer(t), "set fsync on"},
		{synced + "&synchronous_commit=off", "set synchronous_commit on"},
		{synced, ""},
	} {
		log := &lines{}
		s := open(t, row.dsn, pgstore.Config{
			Schema: newSchema(),
			Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn})),
		})
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if got := log.String(); row.says == "" && got != "" || !strings.Contains(got, row.says) {
			t.Errorf("the log is %q, want %q", got, row.says)
		}
	}
}
