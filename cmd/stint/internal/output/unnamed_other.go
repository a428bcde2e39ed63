//go:build unix && !linux

package output

import (
	"errors"
	"os"
)

func openMemory() (*os.File, error) { return nil, errors.ErrUnsupported }

func punch(*os.File, int64, int64) error { return errors.ErrUnsupported }

func openUnnamed(string) (*os.File, error) { return nil, errors.ErrUnsupported }

func openLinkable(string) (*os.File, error) { return nil, errors.ErrUnsupported }

func link(*os.File, string) error { return errors.ErrUnsupported }
