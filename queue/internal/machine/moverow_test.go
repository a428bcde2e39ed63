package machine_test

import (
	"errors"
	"testing"

	"github.com/stintgo/stint/queue/internal/machine"
)

// unreadable are rows of which none can be read.
type unreadable struct{ *rows }

func (unreadable) Get(string) ([]byte, error) { return nil, errDisk }

// A row of a move that cannot be read does not count as none: the store may have moved away.
func TestC6_MoveThatCannotBeRead(t *testing.T) {
	if _, err := machine.ReadMove(unreadable{newRows()}); !errors.Is(err, errDisk) {
		t.Errorf("error %v, want %v", err, errDisk)
	}
}
