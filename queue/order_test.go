package queue_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stintgo/stint/queue"
)

// What orders, outcomes and answers are called in JSON, and their numbers in rows, are
// those of their triggers: clients and stored tasks of earlier versions have them.
func TestC4_OrdersKeepTheirNamesAndNumbers(t *testing.T) {
	for want, v := range map[string]any{
		`["pause","resume","cancel","retry","forget","edit"]`: []queue.Order{
			queue.OrderPause, queue.OrderResume, queue.OrderCancel, queue.OrderRetry, queue.OrderForget,
			queue.OrderEdit,
		},
		`["succeed","fail","snooze","give_back"]`: []queue.OutcomeKind{
			queue.OutcomeSuccess, queue.OutcomeFailure, queue.OutcomeSnooze, queue.OutcomeRelease,
		},
		`[{},{"order":"lose"},{"order":"pause"},{"order":"cancel"}]`: []queue.Answer{
			{}, {Stop: queue.StopLost}, {Stop: queue.StopPause}, {Stop: queue.StopCancel},
		},
	} {
		if text, err := json.Marshal(v); err != nil || string(text) != want {
			t.Errorf("%v is %s in JSON, error %v; want %s", v, text, err, want)
		}
	}
	var o queue.Outcome
	if err := json.Unmarshal([]byte(`{"on":"give_back"}`), &o); err != nil || o.Kind != queue.OutcomeRelease {
		t.Errorf("an outcome is read as %s, error %v", o.Kind, err)
	}
	for n, valid := range map[queue.Trigger]bool{queue.OnRelease: true, queue.OnClaim: false, 0: false} {
		if got := queue.OutcomeKind(n).Valid(); got != valid || queue.OutcomeKind(n).Trigger() != n {
			t.Errorf("outcome %s is valid: %t", n, got)
		}
	}
}

// Each order and each outcome makes steps that the table of transitions has, and no other
// trigger is an order or an outcome.
func TestC4_OrdersAndOutcomesAreInTheTable(t *testing.T) {
	fromWorkers := make(map[queue.Trigger]bool)
	all := make(map[queue.Trigger]bool)
	for _, line := range queue.Transitions() {
		all[line.On] = true
		if line.From == queue.Running {
			fromWorkers[line.On] = true
		}
	}
	for on := queue.Trigger(0); on <= queue.OnEdit+1; on++ {
		if queue.Order(on).Valid() && !all[on] || queue.OutcomeKind(on).Valid() && !fromWorkers[on] {
			t.Errorf("%s is an order or an outcome, and the table has no step of it", on)
		}
		c := queue.Command{Do: queue.Order(on), All: true}
		if err := c.Validate(); (err == nil) != queue.Order(on).Valid() || err != nil && !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("a command to %s is %v", on, err)
		}
	}
}
