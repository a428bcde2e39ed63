package limiter_test

import (
	"testing"

	"github.com/stintgo/stint/bench/limiter"
	"github.com/stintgo/stint/bench/measure/measuretest"
)

func TestEveryCaseRunsOnce(t *testing.T) { measuretest.Run(t, limiter.Cases()) }
