package retry

import (
	"errors"
	"time"
)

// Permanent marks err as an error for which another attempt is useless: [Do] stops and
// returns it. The mark changes nothing else; the text is the same, and
// [errors.Is] and [errors.As] see through it. It stays on the error that Do
// returns, so that an outer Do or a queue stops as well. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// IsPermanent reports whether err or an error that it wraps was marked with
// [Permanent].
func IsPermanent(err error) bool {
	_, ok := errors.AsType[*permanentError](err)
	return ok
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// After gives err the delay after which to try again, for example from an HTTP
// Retry-After header. That delay replaces the policy's for this once; a negative
// one is 0. The text of err stays the same, and [errors.Is] and [errors.As] see
// through it. After of a nil error is nil.
func After(delay time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &afterError{err, delay}
}

// Delay returns the delay that err carries: that of [After], or of any error in
// its tree with a method RetryAfter() time.Duration. It reports false if there
// is none.
func Delay(err error) (time.Duration, bool) {
	carrier, ok := errors.AsType[delayed](err)
	if !ok {
		return 0, false
	}
	return max(carrier.RetryAfter(), 0), true
}

// delayed is the interface of errors that carry a delay.
type delayed interface {
	error
	RetryAfter() time.Duration
}

type afterError struct {
	err   error
	delay time.Duration
}

func (e *afterError) Error() string             { return e.err.Error() }
func (e *afterError) Unwrap() error             { return e.err }
func (e *afterError) RetryAfter() time.Duration { return e.delay }
