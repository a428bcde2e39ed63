package scale_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stintgo/stint/bench/measure"
	"github.com/stintgo/stint/bench/measure/measuretest"
	"github.com/stintgo/stint/bench/scale"
)

// The cases of PostgreSQL and Redis are run by make bench-once, which installs them.
func TestEveryOtherCaseRunsOnce(t *testing.T) {
	tasks, err := scale.Prepare(t.TempDir(), 2000)
	if err != nil {
		t.Fatal(err)
	}
	measuretest.Run(t, slices.DeleteFunc(tasks.Cases(), func(c measure.Case) bool {
		return strings.Contains(c.Name, "PostgreSQL") || strings.Contains(c.Name, "Redis")
	}))
}

func TestNothingPendingIsAnError(t *testing.T) {
	if _, err := scale.Prepare(t.TempDir(), 0); err == nil {
		t.Error("0 pending tasks gave no error")
	}
}
