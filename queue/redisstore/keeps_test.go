package redisstore_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stintgo/stint/queue/redisstore"
)

// TestC11_RedisThatForgets: the log says what a server loses that does not sync what it
// confirms, and how to change that.
func TestC11_RedisThatForgets(t *testing.T) {
	for _, row := range []struct{ args, says string }{
		{"--appendonly no", "set appendonly yes"},
		{"--appendonly yes --appendfsync everysec", "set appendfsync always"},
		{"--appendonly yes --appendfsync no", "set appendfsync always"},
		{"--appendonly yes --appendfsync always", ""},
		{"--appendonly yes --appendfsync everysec --rename-command CONFIG hidden", ""}, // as many services
	} {
		var log strings.Builder
		s := open(t, newServer(t, strings.Fields(row.args)...).url(), redisstore.Config{
			Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
		})
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if got := log.String(); row.says == "" && got != "" || !strings.Contains(got, row.says) {
			t.Errorf("with %s, the log is %q, want %q", row.args, got, row.says)
		}
	}
}
