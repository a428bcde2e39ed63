package core_test

import (
	"testing"

	"github.com/stintgo/stint/bench/core"
	"github.com/stintgo/stint/bench/measure/measuretest"
)

func TestEveryCaseRunsOnce(t *testing.T) { measuretest.Run(t, core.Cases()) }
