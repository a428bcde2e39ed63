package machine

import (
	"errors"
	"fmt"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// validateEdit checks the Edit of a command. OnEdit needs one, other commands have none.
func validateEdit(c *queue.Command) error {
	e := c.Edit
	switch {
	case c.Do != queue.OnEdit && e == nil:
		return nil
	case c.Do != queue.OnEdit:
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
