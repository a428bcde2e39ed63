package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stintgo/stint/queue"
)

// The inbox has tasks that transactions of callers have written beside the machine. Each row
// is one submission, and the row's key is the ID of its first task. The machine accepts the
// tasks and removes the row in the same step.

// InboxRow returns the key and the value of the row of a submission, which it validates like
// Submit with the same limit for payloads, 0 for the default.
func InboxRow(tasks []queue.NewTask, maxPayload int) (key string, value []byte, err error) {
	if len(tasks) == 0 {
		return "", nil, fmt.Errorf("%w: there is no task", queue.ErrInvalid)
	}
	s := submissions{cfg: new(Config{MaxPayload: maxPayload}.withDefaults())}
	if tasks, err = s.checked(tasks); err != nil {
		return "", nil, err
	}
	value, err = json.Marshal(tasks)
	return rowInbox + string(tasks[0].ID[:]), value, err
}

// errEnough ends a scan.
var errEnough = errors.New("enough")

// Inbox returns the keys of up to limit submissions in the inbox, the oldest first, behind a
// key; after "" those at the beginning.
func (m *Machine) Inbox(after string, limit int) (keys []string, err error) {
	return m.keys(max(rowInbox, after+"\x00"), limit)
}

// keys returns up to limit keys of rows that begin with the first letter of from, and are not
// before from, in ascending order.
func (m *Machine) keys(from string, limit int) (keys []string, err error) {
	err = m.journal.ScanFrom(from, func(key string, _ []byte) error {
		if keys = append(keys, key); len(keys) == limit {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return keys, err
}

// AcceptSubmission accepts the tasks of a submission in the inbox and removes its row, in one step. If
// the tasks cannot be accepted, it returns the error of Submit, and the row stays. Queues in
// full take no tasks: older submissions wait for room there. The error names a queue that is
// full: it is a [*FullError].
func (m *Machine) AcceptSubmission(ctx context.Context, now time.Time, key string, full map[string]bool) error {
	value, err := m.journal.GetStored(key)
	if err != nil || value == nil { // it was accepted
		return err
	}
	var tasks []queue.NewTask
	if err := json.Unmarshal(value, &tasks); err != nil {
		return fmt.Errorf("%w: %w", queue.ErrInvalid, err)
	}
	if tasks, err = m.submissions.checked(tasks); err != nil {
		return err
	}
	for i := range tasks {
		if name := queueOf(&tasks[i].Spec); full[name] {
			return &FullError{Queue: name}
		}
	}
	prints := m.fingerprints.of(tasks)
	if err := m.steps.beginChange(ctx, now); err != nil {
		return err
	}
	if _, err = m.submissions.acceptAll(tasks, prints); err == nil {
		m.journal.Set(key, nil, false)
	}
	if syncErr := m.steps.end(ctx); err == nil {
		err = syncErr
	}
	return err
}
