//go:build !unix

package isolate

import (
	"context"
	"errors"
	"fmt"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/retry"
)

var errSystem = retry.Permanent(fmt.Errorf("isolate: %w: this system has no process groups", errors.ErrUnsupported))

func (c *Config) runCommand(context.Context, *queue.Attempt, *Command) (*Exit, error) {
	return nil, errSystem
}

func (c *Config) runHandler(context.Context, string, *queue.Attempt, func(*answer) error) (*returned, error) {
	return nil, errSystem
}

func serve([]string, map[string]AnyHandler) (served bool, err error) { return false, nil }

// Kill does nothing, because there are no process groups on this system.
func Kill() {}
