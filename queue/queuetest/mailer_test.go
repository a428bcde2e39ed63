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

// mailer is a part of a program whose tests these are.
type mailer struct {
	q    *queue.Queue
	send func(to string) error
}

func newMailer(q *queue.Queue, send func(string) error) *mailer {
	m := &mailer{q, send}
	queue.Handle(q, "welcome", m.welcome)
	return m
}

func (m *mailer) signUp(ctx context.Context, address string) error {
	_, err := queue.Submit(ctx, m.q, "welcome", signUp{address}, queue.Spec{Unique: address})
	return err
}

func (m *mailer) welcome(_ context.Context, j *queue.Job[signUp]) error {
	if j.Args.Address == "" {
		return retry.Permanent(errors.New("nobody to welcome"))
	}
	return m.send(j.Args.Address)
}

// A program's tasks run in virtual time: a retry in an hour is seen at once.
func TestWelcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queuetest.New(t, queue.Config{Retry: retry.Policy{Base: time.Hour}})
		calls := 0
		m := newMailer(q, func(string) error {
			if calls++; calls == 1 {
				return errors.New("the mail server is not there")
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

// A handler is called by itself, and the task says what came of it.
func TestWelcome_Nobody(t *testing.T) {
	m := &mailer{send: func(string) error { return nil }}
	if task := queuetest.Work(t, m.welcome, signUp{}, queue.Task{}); task.State != queue.Dead {
		t.Error(queuetest.Life(&task))
	}
}

// What a program does when the answer of its store is lost.
func TestSignUp_AnswerLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := false
		q := queuetest.New(t, queue.Config{}, func(_ context.Context, call string, do func() error) error {
			err := do()
			if call == "Submit" && !lost {
				lost = true
				return queuetest.ErrFault // though it has been done
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
