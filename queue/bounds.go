package queue

import (
	"errors"
	"fmt"
)

// Bounds of texts that a store keeps, and refuses as ErrInvalid if they are longer.
const (
	MaxName   = 200  // bytes of a name, a key, a label, or of By
	MaxReason = 4096 // bytes of the Reason of a [Command] or a [Pause]
)

// Validate reports a By or Reason that is too long, as ErrInvalid. Every store refuses
// what it reports.
func (c *Command) Validate() error {
	return errors.Join(checkLength("by", c.By, MaxName), checkLength("the reason", c.Reason, MaxReason))
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
