package csync_test

import (
	"testing"

	"github.com/stintgo/stint/bench/csync"
	"github.com/stintgo/stint/bench/measure/measuretest"
)

func TestEveryCaseRunsOnce(t *testing.T) { measuretest.Run(t, csync.Cases()) }
