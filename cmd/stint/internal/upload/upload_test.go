package upload_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/stintgo/stint/cmd/stint/internal/upload"
	"github.com/stintgo/stint/internal/peer"
	"github.com/stintgo/stint/queue"
)

// Only a connection that broke or could not be made says that the server has ended: after any
// other error, another server would give the same answer again and again.
func TestOnlyBrokenConnectionsMeanThatTheServerHasEnded(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "unix", Err: syscall.ECONNREFUSED}
	foreign := &peer.ForeignError{UID: 1, Self: 2}
	for _, test := range []struct {
		err  error
		gone bool
	}{
		{refused, true},
		{fmt.Errorf("call: %w", refused), true},
		{io.EOF, true},
		{fmt.Errorf("read: %w", io.ErrUnexpectedEOF), true},
		{&net.OpError{Op: "dial", Net: "unix", Err: foreign}, false},
		{errors.Join(refused, foreign), false},
		{queue.ErrInvalid, false},
		{queue.ErrFull, false},
		{context.DeadlineExceeded, false},
		{errors.New("an upload was removed while it was followed"), false},
	} {
		if got := upload.IsServerGone(test.err); got != test.gone {
			t.Errorf("%v: gone is %t", test.err, got)
		}
	}
}
