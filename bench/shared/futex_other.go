//go:build !linux

package shared

import "errors"

func openFutex(string, int, int) (limit, error) { return nil, errors.ErrUnsupported }

func openFutexGoroutine(string, int, int) (limit, error) { return nil, errors.ErrUnsupported }
