//go:build unix && !linux

package output

import (
	"errors"
	"os"
)

func openUnnamed(string) (*os.File, error) { return nil, errors.ErrUnsupported }

func openLinkable(string) (*os.File, error) { return nil, errors.ErrUnsupported }

func link(*os.File, string) error { return errors.ErrUnsupported }
