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

const (
	// A step accepts at most inboxStep rows of transactions. It reads no further row when those
	// that it has read have inboxBytes, and accepts no further row when those that it accepts have
	// inboxTasks tasks.
	inboxStep  = 200
	inboxTasks = queue.MaxSubmit
	inboxBytes = 1 << 20
)

// AcceptSubmissions accepts the tasks of submissions in the inbox and removes their rows, in one
// step: the tasks of each submission, or none of them. It does so for the first of keys, at least
// for one, and returns an answer for each of these. Keys ascend.
//
// An answer is nil if the submission was accepted; otherwise it is the error of Submit, or of
// check for the name of a queue, and the row stays. Queues that are true in full take no tasks:
// older submissions wait for room there. A queue that is full is added to full, and named by
// the answer, a [*FullError]. If err is not nil, it is not known which submissions were accepted.
func (m *Machine) AcceptSubmissions(
	ctx context.Context, now time.Time, keys []string, full map[string]bool, check func(queueName string) error,
) (answers []error, err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	values, err := m.journal.ReadStored(keys[:min(len(keys), inboxStep)], inboxBytes)
	if err != nil {
		return nil, err
	}
	all := make([]submission, 0, len(values))
	for tasks := 0; len(all) < len(values) && tasks < inboxTasks; {
		s := m.readSubmission(values[len(all)], check)
		tasks += len(s.tasks)
		all = append(all, s)
	}
	if err := m.steps.beginChange(ctx, now); err != nil {
		return nil, err
	}
	answers = make([]error, len(all))
	for i := range all {
		if answers[i] = m.acceptSubmission(&all[i], full); answers[i] == nil && values[i] != nil {
			m.journal.Set(keys[i], nil, false)
		}
	}
	if err := m.steps.end(ctx); err != nil {
		return nil, err
	}
	return answers, nil
}

// submission is a row of the inbox; err is why it cannot be accepted.
type submission struct {
	tasks  []queue.NewTask
	prints []fingerprint
	err    error
}

// readSubmission decodes the value of a row, nil if it was accepted and removed, and checks what
// needs no lock.
func (m *Machine) readSubmission(value []byte, check func(queueName string) error) (s submission) {
	if value == nil {
		return s
	}
	if err := json.Unmarshal(value, &s.tasks); err != nil {
		return submission{err: fmt.Errorf("%w: %w", queue.ErrInvalid, err)}
	}
	for i := range s.tasks {
		if err := check(queueOf(&s.tasks[i].Spec)); err != nil {
			return submission{err: fmt.Errorf("task %d: %w", i, err)}
		}
	}
	if s.tasks, s.err = m.submissions.checked(s.tasks); s.err == nil {
		s.prints = m.fingerprints.of(s.tasks)
	}
	return s
}

// acceptSubmission accepts the tasks of a submission. The caller holds the lock of the machine.
func (m *Machine) acceptSubmission(s *submission, full map[string]bool) error {
	if s.err != nil {
		return s.err
	}
	for i := range s.tasks {
		if name := queueOf(&s.tasks[i].Spec); full[name] {
			return &FullError{Queue: name}
		}
	}
	_, err := m.submissions.acceptAll(s.tasks, s.prints)
	if of, ok := errors.AsType[*FullError](err); ok {
		full[of.Queue] = true
	}
	return err
}
