package queue

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ErrNoResult is the error of a task that has no result, because it has not succeeded;
// the message names its state.
var ErrNoResult = errors.New("queue: no result")

// Result returns the result of a task that has succeeded, as [Attempt.Return] set it; the
// zero T if the handler set none. Errors: [ErrNoResult], and ErrInvalid if the result is
// not a T.
func Result[T any](t Task) (result T, err error) {
	if t.State != Succeeded {
		if t.Error != "" {
			return result, fmt.Errorf("%w: task %s is %s: %s", ErrNoResult, t.ID, t.State, t.Error)
		}
		return result, fmt.Errorf("%w: task %s is %s", ErrNoResult, t.ID, t.State)
	}
	if len(t.Result) == 0 {
		return result, nil
	}
	if err := json.Unmarshal(t.Result, &result); err != nil {
		return result, fmt.Errorf("%w: result of task %s: %w", ErrInvalid, t.ID, err)
	}
	return result, nil
}
