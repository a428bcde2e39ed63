package machine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// Limits of the fields of a task.
const (
	maxAfter = 1000 // tasks in After and AfterAny
	maxError = 4096 // bytes of an error text
)

// queueOf returns the queue of a submitted task.
func queueOf(s *queue.Spec) string { return cmp.Or(s.Queue, queue.DefaultQueue) }

// validateTask checks a submitted task, whose payload may have maxPayload bytes.
func validateTask(t *queue.NewTask, maxPayload int) error {
	var errs []error
	name := func(what, text string) {
		if err := checkName(what, text); err != nil {
			errs = append(errs, err)
		}
	}
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{queue.ErrInvalid}, args...)...))
	}
	if t.ID.IsZero() {
		bad("it has no ID")
	}
	name("queue", queueOf(&t.Spec))
	name("kind", t.Kind)
	for _, may := range [...]struct{ what, text string }{
		{"key", t.Key}, {"unique", t.Unique}, {"group", t.Group}, {"trace", t.Trace},
	} {
		if may.text != "" {
			name(may.what, may.text)
		}
	}
	if t.Tier < stint.Lowest || t.Tier > stint.Highest {
		bad("tier %d is not one from %d to %d", t.Tier, stint.Lowest, stint.Highest)
	}
	if t.MaxAttempts < 0 || t.MaxCrashes < 0 || t.Timeout < 0 {
		bad("max_attempts, max_crashes and timeout are 0 for the default, or more")
	}
	if t.UniqueFor < 0 || t.UniqueFor > queue.MaxUniqueFor || t.UniqueFor > 0 && t.Unique == "" {
		bad("unique_for is %s: it is for a unique name, and at most %s", t.UniqueFor, queue.MaxUniqueFor)
	}
	if len(t.After)+len(t.AfterAny) > maxAfter || len(t.Labels) > queue.MaxLabels {
		bad("it comes after %d tasks and has %d labels; at most %d and %d are possible",
			len(t.After)+len(t.AfterAny), len(t.Labels), maxAfter, queue.MaxLabels)
	}
	if !t.Deadline.IsZero() && !t.RunAt.IsZero() && !t.Deadline.After(t.RunAt) {
		bad("its deadline is not after its run_at")
	}
	if slices.Contains(t.After, t.ID) || slices.Contains(t.AfterAny, t.ID) {
		bad("it comes after itself")
	}
	if !t.AfterBatch.IsZero() && t.AfterBatch == t.Batch {
		bad("it comes after the batch that it belongs to")
	}
	for label, value := range t.Labels {
		name("label", label)
		if value != "" {
			name("label "+label, value)
		}
	}
	if n := len(t.Payload); n > maxPayload {
		errs = append(errs, tooLarge("payload", n, maxPayload))
	}
	return errors.Join(errs...)
}

// checkName checks a name, a key or a label: it must be printable text, because it is
// part of the keys of rows and is displayed.
func checkName(what, text string) error {
	switch {
	case text == "":
		return fmt.Errorf("%w: %s is missing", queue.ErrInvalid, what)
	case len(text) > queue.MaxName:
		return fmt.Errorf("%w: %s has %d bytes, at most %d are possible", queue.ErrInvalid, what, len(text), queue.MaxName)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("%w: %s %q has characters that are not text", queue.ErrInvalid, what, text)
	}
	return nil
}

func tooLarge(what string, n, most int) error {
	return fmt.Errorf("%w: a %s of %d bytes, at most %d are kept", queue.ErrTooLarge, what, n, most)
}

// shortened truncates an error text to maxError bytes.
func shortened(text string) string {
	if len(text) <= maxError {
		return text
	}
	return strings.ToValidUTF8(text[:maxError], "") + " …"
}

// validateEdit checks the Edit of a command, which OrderEdit must have and no other may.
func validateEdit(c *queue.Command) error {
	e := c.Edit
	switch {
	case c.Do != queue.OrderEdit && e == nil:
		return nil
	case c.Do != queue.OrderEdit:
		return fmt.Errorf("%w: the command %s has an Edit, which only edit can have", queue.ErrInvalid, c.Do)
	case e == nil || e.Tier == nil && e.Key == nil && e.RunAt == nil && e.Deadline == nil && len(e.Labels) == 0:
		return fmt.Errorf("%w: the edit sets no field", queue.ErrInvalid)
	}
	var errs []error
	if e.Tier != nil && !e.Tier.Valid() {
		errs = append(errs, fmt.Errorf("%w: tier %d is not one from %d to %d",
			queue.ErrInvalid, *e.Tier, stint.Lowest, stint.Highest))
	}
	if e.Key != nil && *e.Key != "" {
		errs = append(errs, checkName("key", *e.Key))
	}
	for label, value := range e.Labels {
		errs = append(errs, checkName("label", label))
		if value != "" {
			errs = append(errs, checkName("label "+label, value))
		}
	}
	return errors.Join(errs...)
}
