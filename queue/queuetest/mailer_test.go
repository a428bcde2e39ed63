package queuetest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/queuetest"
	"github.com/stintgo/stint/retry"
)

type signUp struct{ Address string }

// mailer stands for a part of a program under test.
type mailer struct {
	q    *queue.Queue
	send func(to string) error
}

func newMailer(q *queue.Queue, send func(string) error) *mailer {
	m := &mailer{q, send}
	queue.Kind[signUp]("welcome").Handle(q, m.welcome)
	return m
}

func (m *mailer) signUp(ctx context.Context, address string) error {
	_, err := queue.Kind[signUp]("welcome").Submit(ctx, m.q, signUp{address}, queue.Options{Unique: address})
	return err
}

func (m *mailer) welcome(_ context.Context, j *queue.Job[signUp]) error {
	if j.Args.Address == "" {
		return retry.Permanent(errors.New("no address"))
	}
	return m.send(j.Args.Address)
}

// Tasks run in virtual time: a retry in an hour takes no real time.
func TestWelcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queuetest.New(t, queue.Config{Retry: retry.Policy{Base: time.Hour}})
		calls := 0
		m := newMailer(q, func(string) error {
			if calls++; calls == 1 {
				return errors.New("the mail server does not answer")
			}
			return nil
		})
		if err := m.signUp(t.Context(), "ann@example.com"); err != nil {
			t.Fatal(err)
		}
		queuetest.Drain(t, q)
		task := queuetest.Only(t, q, queue.Filter{Kind: "welcome"})
		if task.State != queue.Succeeded || task.Failures != 1 {
			t.Error(queuetest.Life(&task))
		}
	})
}

// Work calls one handler without a running queue, and returns the task with the outcome.
func TestWelcome_NoAddress(t *testing.T) {
	m := &mailer{send: func(string) error { return nil }}
	if task := queuetest.Work(t, m.welcome, signUp{}, queuetest.Given{}); task.State != queue.Dead {
		t.Error(queuetest.Life(&task))
	}
}

// The program submits again when the answer of the store is lost.
func TestSignUp_AnswerLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := false
		q := queuetest.New(t, queue.Config{}, func(_ context.Context, call string, do func() error) error {
			err := do()
			if call == "Submit" && !lost {
				lost = true
				return queuetest.ErrFault // although the store has the task
			}
			return err
		})
		m := newMailer(q, func(string) error { return nil })
		for m.signUp(t.Context(), "ann@example.com") != nil {
			queuetest.Sleep(time.Second)
		}
		queuetest.Drain(t, q)
		queuetest.Only(t, q, queue.Filter{Kind: "welcome"})
	})
}
