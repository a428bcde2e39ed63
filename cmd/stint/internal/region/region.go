// Package region opens the slots that processes of this machine share by a name, for the
// commands that use them, and explains errors.
package region

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stintgo/stint/cmd/stint/internal/view"
	"github.com/stintgo/stint/retry"
	"github.com/stintgo/stint/shm"
)

// Spec names slots.
type Spec struct {
	Name string // without a slash, or the path of a file
	Max  int    // number of slots; 0: the number that the name has, or 1
}

// Parse parses NAME or NAME=MAX. An = in the directories of a path belongs to the path;
// if the last part of a path contains =, it needs a MAX.
func Parse(text string) (Spec, error) {
	at := strings.LastIndexByte(text, '=')
	if at <= strings.LastIndexByte(text, '/') {
		return Spec{Name: text}, Spec{Name: text}.Check()
	}
	n, err := strconv.Atoi(text[at+1:])
	if err != nil || n < 1 {
		err = fmt.Errorf("%q: after the last = there must be the number of slots, from 1 on, as in io=4", text)
		if strings.ContainsRune(text, '/') && text[at+1:] != "" {
			err = fmt.Errorf("%w; a file with an = in its name needs that too, as in %s=4", err, text)
		}
		return Spec{}, err
	}
	s := Spec{text[:at], n}
	return s, s.Check()
}

// Check reports an invalid name or number.
func (s Spec) Check() error {
	switch {
	case s.Name == "":
		return errors.New("a name is missing, as in stint sem --name io or stint run --shared io=4; " +
			"processes that use the same name share its slots")
	case s.Name == "." || s.Name == "..":
		return fmt.Errorf("%q is not the name of slots; take letters, as in io", s.Name)
	case strings.ContainsRune(s.Name, '=') && !strings.ContainsRune(s.Name, '/'):
		return fmt.Errorf("%q: a name has no =; the number of slots is --max of stint sem, and "+
			"NAME=MAX of stint run --shared", s.Name)
	case s.Max < 0 || s.Max > shm.SlotsMax:
		return fmt.Errorf("%d slots: the number must be from 1 to %d", s.Max, shm.SlotsMax)
	}
	return nil
}

// Open opens the slots. While the maximum number of processes has them open, it retries
// with growing delays, so there is no order among waiting processes. If ctx ends first,
// the error is the cause of ctx and the last error: [shm.ErrFull], or [shm.ErrStuck] if
// another process was opening the slots. After a second of waiting it calls waits, once.
func (s Spec) Open(ctx context.Context, waits func()) (*shm.Region, error) {
	second := time.After(time.Second)
	cfg := retry.Config{
		Policy: retry.Policy{
			Attempts: math.MaxInt, Base: 5 * time.Millisecond, Max: 200 * time.Millisecond, Jitter: retry.Decorrelated,
		},
		If: func(err error) bool { return errors.Is(err, shm.ErrFull) },
		OnFailure: func(f retry.Failure) {
			select {
			case <-second:
				if !f.Final {
					waits()
				}
			default:
			}
		},
	}
	region, err := s.TryOpen(ctx) // also if ctx has ended: its error is the reason
	if errors.Is(err, shm.ErrFull) {
		err = cfg.Do(ctx, func(ctx context.Context) (err error) {
			region, err = s.TryOpen(ctx)
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	return region, nil
}

// TryOpen opens the slots. If the maximum number of processes has them open, the error is
// [shm.ErrFull]. If another process is opening them, it waits like [shm.OpenContext].
func (s Spec) TryOpen(ctx context.Context) (*shm.Region, error) {
	r, err := s.open(ctx)
	if err != nil && !errors.Is(err, shm.ErrFull) {
		return nil, s.explain(err)
	}
	return r, err
}

func (s Spec) open(ctx context.Context) (*shm.Region, error) {
	const tries = 10 // while other processes create it with other numbers
	for try := 1; ; try++ {
		slots := s.Max
		if slots == 0 {
			slots = s.present()
		}
		r, err := shm.OpenContext(ctx, s.Name, shm.Geometry{Slots: []int{slots}})
		if s.Max > 0 || !errors.Is(err, shm.ErrMismatch) || try == tries {
			return r, err
		}
	}
}

// present returns the number of slots that exist, or 1.
func (s Spec) present() int {
	info, err := shm.Inspect(s.Name)
	if err == nil && len(info.Geometry.Slots) == 1 {
		return info.Geometry.Slots[0]
	}
	return 1
}

// explain returns err with a remedy.
func (s Spec) explain(err error) error {
	other := "take another name"
	if strings.ContainsRune(s.Name, '/') {
		other = "a name with a slash is the path of a file: take one in an existing directory of yours, " +
			"or a name without a slash"
	}
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return fmt.Errorf("slots can be shared only on Linux: %w", err)
	case errors.Is(err, shm.ErrMismatch):
		return s.mismatch(err)
	case errors.Is(err, shm.ErrNotOurs):
		return fmt.Errorf("%w; %s", err, other)
	case errors.Is(err, syscall.ENAMETOOLONG):
		return fmt.Errorf("%w: a name can have 255 bytes", err)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w, or take the path of a file elsewhere as the name", err)
	case errors.Is(err, os.ErrPermission), errors.Is(err, os.ErrNotExist),
		errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENOTDIR):
		if !strings.ContainsRune(s.Name, '/') {
			other = "where /dev/shm cannot be written, take the path of a file as the name, as in " + "--name \"$HOME/io\""
		}
		return fmt.Errorf("%w; %s", err, other)
	}
	return err
}

// mismatch explains what exists in place of the slots.
func (s Spec) mismatch(err error) error {
	info, unseen := shm.Inspect(s.Name)
	switch {
	case unseen != nil:
		return fmt.Errorf("%w; take another name", err)
	case len(info.Geometry.Slots) != 1 || info.Geometry.Mutexes+len(info.Geometry.Rates) > 0:
		return fmt.Errorf("%s is in use by %s for something else (limits: %d, mutexes: %d, rates: %d): take another name",
			s.Name, view.Processes(info.Processes), len(info.Slots), len(info.Mutexes), len(info.Geometry.Rates))
	}
	return fmt.Errorf("%s is in use with a max of %d, not %d, by %s: leave the number out, "+
		"take another name, or wait until no process has it open",
		s.Name, info.Geometry.Slots[0], s.Max, view.Processes(info.Processes))
}
