package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
)

// TxSubmissions is the tasks that transactions of callers have written beside the machine.
// Each row is one submission, and the row's key is the ID of its first task. The machine
// accepts the tasks and removes the row in the same step. It is safe for concurrent use.
type TxSubmissions struct {
	fingerprints *fingerprints
	journal      *journal.Journal
	steps        *steps
	submissions  *submissions
}

// NewTxSubmissions returns the submissions beside a machine.
func NewTxSubmissions(m *Machine) *TxSubmissions {
	return &TxSubmissions{
		fingerprints: &m.fingerprints, journal: m.journal, steps: &m.steps, submissions: &m.submissions,
	}
}

// SubmissionRow returns the key and the value of the row of a submission, which it validates
// like Submit with the same limit for payloads, 0 for the default.
func SubmissionRow(tasks []queue.NewTask, maxPayload int) (key string, value []byte, err error) {
	if len(tasks) == 0 {
		return "", nil, fmt.Errorf("%w: there is no task", queue.ErrInvalid)
	}
	s := submissions{cfg: new(Config{MaxPayload: maxPayload}.withDefaults())}
	if tasks, err = s.checked(tasks); err != nil {
		return "", nil, err
	}
	value, err = json.Marshal(tasks)
	return rowSubmission + string(tasks[0].ID[:]), value, err
}

// Keys returns the keys of up to limit submissions, the oldest first, behind a key; after ""
// those at the beginning.
func (s *TxSubmissions) Keys(after string, limit int) ([]string, error) {
	return firstKeys(s.journal, max(rowSubmission, after+"\x00"), limit)
}

// firstKeys returns up to limit keys of rows that begin with the first letter of from, and are
// not before from, in ascending order.
func firstKeys(j *journal.Journal, from string, limit int) (keys []string, err error) {
	err = j.Stored().ScanFrom(from, func(key string, _ []byte) error {
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

// errEnough ends a scan.
var errEnough = errors.New("enough")

const (
	// A step accepts at most txRows rows of transactions. It reads no further row when those
	// that it has read have txBytes, and accepts no further row when those that it accepts have
	// txTasks tasks.
	txRows  = 200
	txTasks = queue.MaxSubmit
	txBytes = 1 << 20
)

// Accept accepts the tasks of submissions and removes their rows, in one step: the tasks of each
// submission, or none of them. It does so for the first of keys, at least
// for one, and returns an answer for each of these. Keys ascend.
//
// An answer is nil if the submission was accepted; otherwise it is the error of Submit, or of
// check for the name of a queue, and the row stays. Queues that are true in full take no tasks:
// older submissions wait for room there. A queue that is full is added to full, and named by
// the answer, a [*FullError]. If err is not nil, it is not known which submissions were accepted.
func (s *TxSubmissions) Accept(
	ctx context.Context, now time.Time, keys []string, full map[string]bool, check func(queueName string) error,
) (answers []error, err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	values, err := s.journal.Stored().Read(keys[:min(len(keys), txRows)], txBytes)
	if err != nil {
		return nil, err
	}
	all := make([]txSubmission, 0, len(values))
	for tasks := 0; len(all) < len(values) && tasks < txTasks; {
		next := s.decode(values[len(all)], check)
		tasks += len(next.tasks)
		all = append(all, next)
	}
	if err := s.steps.beginChange(ctx, now); err != nil {
		return nil, err
	}
	answers = make([]error, len(all))
	for i := range all {
		if answers[i] = s.accept(&all[i], full); answers[i] == nil && values[i] != nil {
			s.journal.Set(keys[i], nil, false)
		}
	}
	if err := s.steps.end(ctx); err != nil {
		return nil, err
	}
	return answers, nil
}

// txSubmission is the row of a submission; err is why it cannot be accepted.
type txSubmission struct {
	tasks  []queue.NewTask
	prints []fingerprint
	err    error
}

// decode decodes the value of a row, nil if it was accepted and removed, and checks what needs no
// lock.
func (s *TxSubmissions) decode(value []byte, check func(queueName string) error) (sub txSubmission) {
	if value == nil {
		return sub
	}
	if err := json.Unmarshal(value, &sub.tasks); err != nil {
		return txSubmission{err: fmt.Errorf("%w: %w", queue.ErrInvalid, err)}
	}
	for i := range sub.tasks {
		if err := check(queueOf(&sub.tasks[i].Spec)); err != nil {
			return txSubmission{err: fmt.Errorf("task %d: %w", i, err)}
		}
	}
	if sub.tasks, sub.err = s.submissions.checked(sub.tasks); sub.err == nil {
		sub.prints = s.fingerprints.of(sub.tasks)
	}
	return sub
}

// accept accepts the tasks of a submission. The caller holds the lock of the machine.
func (s *TxSubmissions) accept(sub *txSubmission, full map[string]bool) error {
	if sub.err != nil {
		return sub.err
	}
	for i := range sub.tasks {
		if name := queueOf(&sub.tasks[i].Spec); full[name] {
			return &FullError{Queue: name}
		}
	}
	_, err := s.submissions.acceptAll(sub.tasks, sub.prints)
	if of, ok := errors.AsType[*FullError](err); ok {
		full[of.Queue] = true
	}
	return err
}
