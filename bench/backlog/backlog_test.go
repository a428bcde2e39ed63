package backlog_test

import (
	"testing"

	"github.com/stintgo/stint/bench/backlog"
	"github.com/stintgo/stint/bench/measure/measuretest"
)

func TestEveryCaseRunsOnce(t *testing.T) { measuretest.Run(t, backlog.Cases()) }
