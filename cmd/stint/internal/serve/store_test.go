package serve_test

import (
	"strings"
	"testing"

	"github.com/stintgo/stint/cmd/stint/internal/serve"
)

// The way to the database is that to its first server.
func TestC11_WayToTheDatabase(t *testing.T) {
	t.Setenv("PGHOST", "db.of.environment")
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
		"postgres:///jobs?host=db.example.org&port=6432":   "db.example.org:6432",
		"postgres://u@/jobs":                               "db.of.environment:5432",
		"postgres://root:secret@host:port/jobs":            "",
	} {
		if got := serve.Route(url); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}

// The logs of a server belong to the stores of all its groups: a server that is started without one of them removes no
// logs of its tasks.
func TestC4_LogsBelongToTheStoresOfAllGroups(t *testing.T) {
	cfg := serve.Config{
		Store:  "redis://u:secret@a:6379",
		Groups: []serve.Group{{Name: "mail"}, {Name: "news", Store: "redis://b:6379"}},
	}
	names := strings.Split(serve.StoreOf(&cfg), "\n")
	if len(names) != 3 || names[0] == names[1] ||
		!strings.Contains(names[1], "//a") || !strings.Contains(names[2], "//b") {
		t.Errorf("the stores are %q, want those of default and mail on a, and that of news on b", names)
	}
}
