//go:build !linux

package shm_test

import (
	"errors"
	"testing"

	"github.com/stintgo/stint/shm"
)

// Where nothing can be shared nothing seems to be.
func TestB8_RegionOfAnotherSystem(t *testing.T) {
	if _, err := shm.Open("region", shm.Geometry{Slots: []int{1}}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("opened: %v, want %v", err, errors.ErrUnsupported)
	}
}
