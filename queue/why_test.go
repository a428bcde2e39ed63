package queue_test

import (
	"fmt"
	"testing"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// The String of the embedded Reason would leave out what only tasks have.
func TestC4_ReasonOfATaskIsWhole(t *testing.T) {
	r := queue.Reason{Reason: stint.Reason{Code: stint.CodeMax, Limit: 3, Running: 3}, What: "w", Failures: 2}
	if got, want := fmt.Sprint(r), `{"code":"max","limit":3,"running":3,"what":"w","failures":2}`; got != want {
		t.Errorf("it reads %s, want %s", got, want)
	}
}
