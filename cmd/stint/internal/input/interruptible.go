package input

import (
	"context"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Interruptible returns a reader of f whose blocked Read returns ctx's cause when ctx
// ends. A plain read of a terminal or a pipe would block its goroutine until input comes,
// long after the run has ended. Making the descriptor non-blocking is not an option: it
// is shared with the shell.
//
// The reader is for one goroutine. Call stop when done: it frees the reader's resources
// and leaves f open.
func Interruptible(ctx context.Context, f *os.File) (r io.Reader, stop func(), err error) {
	wakeRead, wakeWrite, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	cancel := context.AfterFunc(ctx, func() { _ = wakeWrite.Close() })
	stop = func() {
		// If AfterFunc has run, or is running, it closes the file itself; a second close
		// only returns an error.
		cancel()
		_ = wakeWrite.Close()
		_ = wakeRead.Close()
	}
	return &interruptible{ctx: ctx, fd: int(f.Fd()), wake: int32(wakeRead.Fd()), keep: wakeRead}, stop, nil
}

type interruptible struct {
	ctx  context.Context //nolint:containedctx // io.Reader has no parameter for it
	fd   int
	wake int32    // becomes readable (end of file) when ctx ends
	keep *os.File // keeps the garbage collector from closing wake
}

// Read waits until there is input or ctx has ended.
func (r *interruptible) Read(b []byte) (int, error) {
	fds := []unix.PollFd{{Fd: int32(r.fd), Events: unix.POLLIN}, {Fd: r.wake, Events: unix.POLLIN}}
	for {
		if r.ctx.Err() != nil {
			return 0, context.Cause(r.ctx)
		}
		if _, err := unix.Poll(fds, -1); err != nil && err != unix.EINTR {
			return 0, os.NewSyscallError("poll", err)
		}
		if fds[0].Revents == 0 {
			continue
		}
		n, err := unix.Read(r.fd, b)
		switch {
		case err == unix.EINTR || err == unix.EAGAIN:
			continue
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}
