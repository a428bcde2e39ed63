package wire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

func TestC6_ProblemsKeepTheirErrors(t *testing.T) {
	other := errors.New("something else")
	tests := []struct{ err, want error }{
		{queue.ErrInvalid, queue.ErrInvalid},
		{queue.ErrNotFound, queue.ErrNotFound},
		{queue.ErrFull, queue.ErrFull},
		{queue.ErrTooLarge, queue.ErrTooLarge},
		{queue.ErrStale, queue.ErrStale},
		{queue.ErrChanged, queue.ErrChanged},
		{queue.ErrUnavailable, queue.ErrUnavailable},
		{queue.ErrClosed, queue.ErrUnavailable},
		{other, queue.ErrUnavailable},
		{fmt.Errorf("%w: read task: %w", queue.ErrUnavailable, queue.ErrInvalid), queue.ErrUnavailable},
		{errors.Join(queue.ErrInvalid, queue.ErrTooLarge), queue.ErrTooLarge},
	}
	for _, test := range tests {
		sent := fmt.Errorf("a task \"ü\": %w", test.err)
		text, err := json.Marshal(wire.ProblemOf(sent))
		if err != nil {
			t.Fatal(err)
		}
		var p wire.Problem
		if err := json.Unmarshal(text, &p); err != nil {
			t.Fatal(err)
		}
		got := p.Err()
		for _, kind := range []error{
			queue.ErrInvalid, queue.ErrNotFound, queue.ErrFull, queue.ErrTooLarge, queue.ErrStale, queue.ErrUnavailable,
			queue.ErrClosed, queue.ErrChanged,
		} {
			if errors.Is(got, kind) != (kind == test.want) { //nolint:errorlint // whether it is the same error
				t.Errorf("%v arrives as %v; that it is %v: %t", sent, got, kind, errors.Is(got, kind))
			}
		}
		if errors.Is(test.err, test.want) && got.Error() != sent.Error() {
			t.Errorf("the text is %q, want %q", got, sent)
		}
	}
	if err := (&wire.Problem{Code: "of a later version", Detail: "why"}).Err(); !errors.Is(err, queue.ErrUnavailable) {
		t.Errorf("an unknown code is %v", err)
	}
}
