package queue

import (
	"errors"
	"fmt"
)

// Limits of texts in bytes. A store refuses longer texts as ErrInvalid.
const (
	MaxName   = 200  // of a name, a key, a label, or of By
	MaxReason = 4096 // of the Reason of a [Command] or a [Pause]
)

// MaxLabels is the number of labels that a task may have. A store refuses more as ErrInvalid.
const MaxLabels = 32

// Validate reports, as ErrInvalid, a Do that is not one of the orders, a By or Reason that
// is too long, and a Filter that sets no field if All is not set. Every store refuses what it reports.
func (c *Command) Validate() error {
	err := errors.Join(checkLength("by", c.By, MaxName), checkLength("the reason", c.Reason, MaxReason))
	if !c.Do.Valid() {
		err = errors.Join(err, fmt.Errorf("%w: Do of a command is %s: use one of %v", ErrInvalid, c.Do, Orders()))
	}
	if !c.All && c.Filter.findsAll() {
		err = errors.Join(err, fmt.Errorf("%w: the command %s has a filter that finds every task: "+
			"set a field of Filter, or set All to mean every task", ErrInvalid, c.Do))
	}
	return err
}

// findsAll reports whether no field of f is set, so that f finds every task.
func (f *Filter) findsAll() bool {
	return f.IDs == nil && f.Ending == "" && f.Queue == "" && f.Kind == "" && f.Key == "" && f.Group == "" &&
		f.Batch.IsZero() && f.Worker == "" && len(f.States) == 0 && len(f.Labels) == 0 && f.Error == "" &&
		f.From.IsZero() && f.To.IsZero()
}

// Validate reports a By or Reason that is too long, as ErrInvalid. Every store refuses
// what it reports. It accepts nil, which ends a pause.
func (p *Pause) Validate() error {
	if p == nil {
		return nil
	}
	return errors.Join(checkLength("by", p.By, MaxName), checkLength("the reason", p.Reason, MaxReason))
}

// Validate reports a host, or a name of a queue or kind, that is too long, as ErrInvalid.
// Every store refuses what it reports.
func (w *Worker) Validate() error {
	errs := []error{checkLength("the host", w.Host, MaxName)}
	for name, kinds := range w.Kinds {
		errs = append(errs, checkLength("the name of a queue", name, MaxName))
		for _, kind := range kinds {
			errs = append(errs, checkLength("the name of a kind", kind, MaxName))
		}
	}
	return errors.Join(errs...)
}

func checkLength(what, text string, most int) error {
	if len(text) > most {
		return fmt.Errorf("%w: %s has %d bytes, at most %d are possible", ErrInvalid, what, len(text), most)
	}
	return nil
}
