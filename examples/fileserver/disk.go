package main

import (
	"context"
	"io"
	"io/fs"
	"net/http"
	"os"
	"time"

	"github.com/stintgo/stint"
)

// chunkSize is how many bytes are read on one slot. If all slots are in use, a request
// waits until one of these reads has ended, whatever its priority: so reading a chunk
// should take little longer than the shortest read. A disk that seeks for 8 ms needs 1 or
// 2 ms more for 256 KiB.
const chunkSize = 256 << 10

// readFunc reads from a file like [os.File.ReadAt].
type readFunc func(f *os.File, p []byte, offset int64) (int, error)

// slowed returns the readFunc of a disk whose every read takes longer.
func slowed(by time.Duration) readFunc {
	return func(f *os.File, p []byte, offset int64) (int, error) {
		time.Sleep(by)
		return f.ReadAt(p, offset)
	}
}

// disk is a directory that is read on slots of a scheduler, which processes share.
// Opening a file needs no slot, because the kernel seldom reads the disk for it.
type disk struct {
	root  *os.Root
	read  readFunc
	slots stint.Scheduler
}

// ServeHTTP serves a file. Ranges, dates, types and directories are those of
// [http.FileServerFS].
func (d *disk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx := stint.WithPriority(r.Context(), priorityOf(r.Header))
	http.FileServerFS(&view{disk: d, ctx: ctx, client: http.NewResponseController(w)}).ServeHTTP(w, r)
}

// view is the disk as one request sees it. Its context has the priority, and ends when
// the client leaves: its read then leaves the queue.
type view struct {
	*disk
	ctx    context.Context //nolint:containedctx // fs.FS has no context parameter
	client *http.ResponseController
}

// Open opens a file or directory.
func (v *view) Open(name string) (fs.File, error) {
	opened, err := v.root.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := opened.Stat()
	if err != nil {
		_ = opened.Close()
		return nil, err
	}
	content := io.NewSectionReader(&chunks{view: v, file: opened, size: info.Size()}, 0, info.Size())
	return &file{SectionReader: content, view: v, opened: opened}, nil
}

// onSlot waits for a slot and reads. The time in which the client must receive the data
// begins then.
func onSlot[T any](v *view, read func() (T, error)) (T, error) {
	value, err := stint.Run(v.ctx, v.slots, func(context.Context) (T, error) { return read() })
	if err == nil {
		err = v.client.SetWriteDeadline(time.Now().Add(stall))
	}
	return value, err
}

// file reads and seeks in chunks.
type file struct {
	*io.SectionReader
	view   *view
	opened *os.File
}

func (f *file) Stat() (fs.FileInfo, error) { return f.opened.Stat() }
func (f *file) Close() error               { return f.opened.Close() }

// ReadDir lists a directory.
func (f *file) ReadDir(n int) ([]fs.DirEntry, error) {
	return onSlot(f.view, func() ([]fs.DirEntry, error) { return f.opened.ReadDir(n) })
}

// chunks is a file with one chunk in memory. The slot is held while the disk reads the
// chunk, not while it is sent: clients may be slower than disks.
type chunks struct {
	view  *view
	file  *os.File
	size  int64
	chunk []byte
	start int64 // of chunk in the file
}

// ReadAt copies from the chunk in memory, and reads further chunks into it.
func (c *chunks) ReadAt(p []byte, offset int64) (n int, err error) {
	for n < len(p) {
		at := offset + int64(n)
		if at < c.start || at >= c.start+int64(len(c.chunk)) {
			if err := c.load(at); err != nil {
				return n, err
			}
		}
		if at >= c.start+int64(len(c.chunk)) {
			return n, io.ErrUnexpectedEOF // the file has become shorter
		}
		n += copy(p[n:], c.chunk[at-c.start:])
	}
	return n, nil
}

// load reads the chunk at start.
func (c *chunks) load(start int64) (err error) {
	c.chunk, c.start = nil, start // many requests may wait: none of them holds memory
	c.chunk, err = onSlot(c.view, func() ([]byte, error) {
		chunk := make([]byte, min(chunkSize, c.size-start))
		n, err := c.view.read(c.file, chunk, start)
		if n > 0 {
			err = nil // a short read is enough
		}
		return chunk[:n], err
	})
	return err
}
