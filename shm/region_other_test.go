//go:build !linux

package shm_test

import (
	"errors"
	"testing"

	"github.com/stintgo/stint/shm"
)

// On other systems Open fails with errors.ErrUnsupported.
func TestB8_RegionOnOtherSystems(t *testing.T) {
	if _, err := shm.Open("region", shm.Geometry{Slots: []int{1}}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("opened: %v, want %v", err, errors.ErrUnsupported)
	}
}
