package serve_test

import (
	"testing"

	"github.com/stintgo/stint/cmd/stint/internal/serve"
)

// The way to the database is that to its first server.
func TestC11_WayToTheDatabase(t *testing.T) {
	for url, want := range map[string]string{
		"postgres://db.example.org/jobs":                   "db.example.org:5432",
		"postgresql://u:p@ss@10.0.0.7:6432/jobs?sslmode=x": "10.0.0.7:6432",
		"postgres://u@a.example:1,b.example:2/jobs":        "a.example:1",
		"redis://:secret@cache:6380/2":                     "cache:6380",
		"rediss://cache":                                   "cache:6379",
		"redis://[2001:db8::1]:6379":                       "[2001:db8::1]:6379",
		"postgres://[2001:db8::1]/jobs":                    "[2001:db8::1]:5432",
		"unix:///run/redis.sock":                           "",
		"postgres:///jobs?host=/run/postgresql":            "",
		"postgres://root:secret@host:port/jobs":            "",
	} {
		if got := serve.Route(url); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}
