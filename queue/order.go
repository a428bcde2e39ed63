package queue

import "fmt"

// Order is what a [Command] does to tasks. It has the number and the name of the [Trigger]
// of the steps that it makes.
type Order uint8

// The orders.
const (
	OrderPause  = Order(OnPause)  // keep tasks from starting; a running one stops
	OrderResume = Order(OnResume) // end the pause of tasks
	OrderCancel = Order(OnCancel) // end tasks permanently; a running one stops
	OrderRetry  = Order(OnRetry)  // restart dead and cancelled tasks, and start scheduled ones now
	OrderForget = Order(OnForget) // remove finished tasks
	OrderEdit   = Order(OnEdit)   // change fields of tasks; see [Edit]
)

// Orders returns all orders.
func Orders() []Order {
	return []Order{OrderPause, OrderResume, OrderCancel, OrderRetry, OrderForget, OrderEdit}
}

// Trigger returns the trigger of the steps that the order makes.
func (o Order) Trigger() Trigger { return Trigger(o) }

// Valid reports whether o is one of the orders.
func (o Order) Valid() bool {
	switch o {
	case OrderPause, OrderResume, OrderCancel, OrderRetry, OrderForget, OrderEdit:
		return true
	}
	return false
}

// String returns the name of the order, as JSON has it.
func (o Order) String() string { return Trigger(o).String() }

// MarshalText returns the name of the order.
func (o Order) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads the name of an order. Errors: ErrInvalid.
func (o *Order) UnmarshalText(text []byte) error {
	for _, known := range Orders() {
		if known.String() == string(text) {
			*o = known
			return nil
		}
	}
	return fmt.Errorf("%w: unknown order %q; the orders are %v", ErrInvalid, text, Orders())
}

// OutcomeKind is how an attempt ended, as its worker reports it. It has the number and the
// name of the [Trigger] of the step that it makes.
type OutcomeKind uint8

// The kinds of outcomes.
const (
	OutcomeSuccess = OutcomeKind(OnSuccess) // the handler returned without an error
	OutcomeFailure = OutcomeKind(OnFailure) // the handler returned an error, panicked or ran out of time
	OutcomeSnooze  = OutcomeKind(OnSnooze)  // the handler asked to be called again later; no failure
	OutcomeRelease = OutcomeKind(OnRelease) // the worker ends the lease; neither success nor failure
)

// Trigger returns the trigger of the step that the outcome makes.
func (k OutcomeKind) Trigger() Trigger { return Trigger(k) }

// Valid reports whether k is one of the kinds.
func (k OutcomeKind) Valid() bool {
	switch k {
	case OutcomeSuccess, OutcomeFailure, OutcomeSnooze, OutcomeRelease:
		return true
	}
	return false
}

// String returns the name of the kind, as JSON has it.
func (k OutcomeKind) String() string { return Trigger(k).String() }

// MarshalText returns the name of the kind.
func (k OutcomeKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the name of any trigger: a store answers each outcome by itself, so
// an outcome of an unknown kind does not make the whole call invalid. Errors: ErrInvalid.
func (k *OutcomeKind) UnmarshalText(text []byte) error { return (*Trigger)(k).UnmarshalText(text) }

// StopReason is the reason for which a worker has to stop a running task. Zero means to
// continue.
type StopReason uint8

// The reasons to stop.
const (
	StopLost   = StopReason(OnLost)   // the lease has ended
	StopPause  = StopReason(OnPause)  // the task has been ordered to pause
	StopCancel = StopReason(OnCancel) // the task has been ordered to cancel
)

// String returns the name of the reason, as JSON has it.
func (r StopReason) String() string { return Trigger(r).String() }

// MarshalText returns the name of the reason.
func (r StopReason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the name of any trigger. Errors: ErrInvalid.
func (r *StopReason) UnmarshalText(text []byte) error { return (*Trigger)(r).UnmarshalText(text) }
