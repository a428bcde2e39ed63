package backlog_test

import (
	"testing"

	"github.com/stintgo/stint/bench/backlog"
	"github.com/stintgo/stint/bench/measure"
)

func TestEveryCaseRunsOnce(t *testing.T) {
	for _, c := range backlog.Cases() {
		r, err := measure.Once().Run(c)
		if err != nil {
			t.Error(err)
			continue
		}
		t.Log(c.Name, r.Samples)
	}
}
