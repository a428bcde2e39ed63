package queue

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ErrNoResult is the error of a task that has no result, since it has not
// succeeded; the message says what became of it.
var ErrNoResult = errors.New("queue: no result")

// Result is the result of a task that has succeeded, as [Attempt.Return] kept it;
// the zero T if it kept none. Errors: [ErrNoResult], and ErrInvalid if the result
// is no T.
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
