package stint_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
)

// An outcome that is ready is yielded at once, however long the next input takes.
func TestA9_OutcomesDoNotWaitForInputs(t *testing.T) {
	eachMap(t, func(t mapTrial) {
		s := stint.New(2, stint.Config{})
		inputs := func(yield func(int) bool) {
			for i := 0; i < 10 && yield(i); i++ {
				<-time.After(time.Hour)
			}
		}
		began := time.Now()
		outcomes := 0
		for _, err := range t.over(t.Context(), s, inputs, twice) {
			if late := time.Since(began) - time.Duration(outcomes)*time.Hour; late != 0 || err != nil {
				t.Errorf("outcome %d comes %v after it was ready, error %v", outcomes, late, err)
			}
			outcomes++
		}
		if outcomes != 10 {
			t.Errorf("%d of 10 outcomes", outcomes)
		}
		atRest(t, s)
	})
}

// Inputs may be made of outcomes: here each is what the call before it returned.
func TestA9_InputsOfOutcomes(t *testing.T) {
	eachMap(t, func(t mapTrial) {
		s := stint.New(2, stint.Config{})
		next := make(chan int, 1)
		next <- 1
		inputs := func(yield func(int) bool) {
			for n := range next {
				if !yield(n) {
					return
				}
			}
		}
		last := 0
		for n, err := range t.over(t.Context(), s, inputs, twice) {
			if last = n; err != nil {
				t.Error(err)
			}
			if n >= 1000 {
				close(next)
			} else {
				next <- n
			}
		}
		if last != 1024 {
			t.Errorf("the last outcome is %d, want 1024", last)
		}
		atRest(t, s)
	})
}

// A range ends with its context, and when it is left, though its inputs are waited for.
func TestA9_RangeEndsWhileInputsBlock(t *testing.T) {
	eachMap(t, func(t mapTrial) {
		for _, leave := range []bool{false, true} {
			s := stint.New(2, stint.Config{})
			ctx, cancel := context.WithCancelCause(t.Context())
			more := make(chan int, 2)
			more <- 1
			stopped := false
			inputs := func(yield func(int) bool) {
				for n := range more {
					if !yield(n) {
						stopped = true
						return
					}
				}
			}
			time.AfterFunc(time.Second, func() { cancel(errBoom) })
			var last error
			outcomes := 0
			for _, err := range t.over(ctx, s, inputs, twice) {
				outcomes++
				if last = err; leave {
					break
				}
			}
			if !leave && (outcomes != 2 || last != errBoom) { //nolint:errorlint // the very error
				t.Errorf("%d outcomes, the last with error %v, want 2 and boom", outcomes, last)
			}
			more <- 2
			if synctest.Wait(); !stopped {
				t.Error("inputs is not stopped at its next input")
			}
			atRest(t, s)
		}
	})
}

// panickingInputs panic after the first input.
func panickingInputs(yield func(int) bool) {
	if yield(0) {
		panic(errBoom)
	}
}

// A panic in the inputs continues in the goroutine of the range, with the stack of the inputs.
func TestA9_PanicInTheInputsHasItsStack(t *testing.T) {
	eachMap(t, func(t mapTrial) {
		s := stint.New(2, stint.Config{})
		defer atRest(t, s)
		defer func() {
			p, _ := recover().(*stint.PanicError)
			if p == nil || p.Value != any(errBoom) || !strings.Contains(string(p.Stack), "panickingInputs") {
				t.Errorf("the range panics with %v, want boom and the stack of the inputs", p)
			}
		}()
		for _, err := range t.over(t.Context(), s, panickingInputs, twice) {
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// OnPanic receives a panic in the inputs also if the range has been left, or is left at that moment: then
// there is no goroutine in which the panic could continue.
func TestA3_OnPanicReceivesPanicsInTheInputs(t *testing.T) {
	eachMap(t, func(t mapTrial) {
		for _, when := range []string{"before the range is left", "after it", "in a range that goes on"} {
			var seen panics
			s := stint.New(2, stint.Config{OnPanic: seen.add})
			goOn := make(chan struct{})
			inputs := func(yield func(int) bool) {
				yield(0)
				<-goOn
				panickingInputs(func(int) bool { return true })
			}
			func() {
				defer func() {
					if passedOn := recover() != nil; passedOn != (when == "in a range that goes on") {
						t.Errorf("a panic %s is passed on: %t", when, passedOn)
					}
				}()
				for _, err := range t.over(t.Context(), s, inputs, twice) {
					if err != nil {
						t.Error(err)
					}
					if when != "after it" {
						close(goOn)
						synctest.Wait()
					}
					if when != "in a range that goes on" {
						break
					}
				}
			}()
			if when == "after it" {
				close(goOn)
				synctest.Wait()
			}
			all := seen.take()
			if len(all) != 1 || all[0].Value != any(errBoom) || !strings.Contains(string(all[0].Stack), "panickingInputs") {
				t.Errorf("a panic %s: OnPanic received %v, want boom and its stack", when, all)
			}
			atRest(t, s)
		}
	})
}

// A goroutine that inputs ends, as a failing test does, ends that of the range.
func TestA9_GoexitInTheInputs(t *testing.T) {
	eachMap(t, func(t mapTrial) {
		s := stint.New(2, stint.Config{})
		inputs := func(yield func(int) bool) {
			if yield(0) {
				runtime.Goexit()
			}
		}
		goesOn := false
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for _, err := range t.over(t.Context(), s, inputs, untilDoneFor) {
				t.Errorf("outcome: %v", err)
			}
			goesOn = true
		}()
		if <-ended; goesOn {
			t.Error("the goroutine goes on after the range")
		}
		atRest(t, s)
	})
}
