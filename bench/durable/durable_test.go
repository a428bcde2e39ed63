package durable_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stintgo/stint/bench/durable"
	"github.com/stintgo/stint/bench/measure"
	"github.com/stintgo/stint/bench/measure/measuretest"
)

// Those that need a database or a C compiler are run by make bench-once, which
// installs them.
func TestEveryOtherSubjectRunsOnce(t *testing.T) {
	needs := []string{"Redis", "PostgreSQL", "SQLite"}
	t.Setenv("TMPDIR", t.TempDir())
	var cases []measure.Case
	for _, c := range new(durable.Systems).Cases() {
		var subjects []measure.Subject
		for _, s := range c.Subjects {
			if !slices.ContainsFunc(needs, func(need string) bool { return strings.Contains(s.Name, need) }) {
				subjects = append(subjects, s)
			}
		}
		if c.Subjects = subjects; len(subjects) > 0 {
			cases = append(cases, c)
		}
	}
	measuretest.Run(t, cases)
}

// Each row states the durability that its subject promises.
func TestEverySubjectSaysWhatItPromises(t *testing.T) {
	for _, c := range new(durable.Systems).Cases() {
		for _, s := range c.Subjects {
			promise := ""
			for _, p := range []string{"(synced)", "(not synced)", "(memory)", "(floor)"} {
				if strings.Contains(s.Name, p) {
					promise = p
				}
			}
			if promise == "" && !strings.HasPrefix(c.Name, "limits") {
				t.Errorf("%s: %s does not say whether it is synced", c.Name, s.Name)
			}
		}
	}
}
