package upload_test

import (
	"testing"

	"github.com/stintgo/stint/bench/measure/measuretest"
	"github.com/stintgo/stint/bench/upload"
)

func TestCases(t *testing.T) {
	systems, err := upload.Prepare(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	measuretest.Run(t, systems.Cases())
}
