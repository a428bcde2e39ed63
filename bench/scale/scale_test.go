package scale_test

import (
	"testing"

	"github.com/stintgo/stint/bench/measure/measuretest"
	"github.com/stintgo/stint/bench/scale"
)

func TestEveryCaseRunsOnce(t *testing.T) {
	tasks, err := scale.Prepare(t.TempDir(), 2000)
	if err != nil {
		t.Fatal(err)
	}
	measuretest.Run(t, tasks.Cases())
}

func TestNothingPendingIsAnError(t *testing.T) {
	if _, err := scale.Prepare(t.TempDir(), 0); err == nil {
		t.Error("0 pending tasks gave no error")
	}
}
