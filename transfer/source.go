package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"github.com/stintgo/stint/retry"
)

// ErrChanged is wrapped by the error of an attempt whose file changed while it was read. The
// next attempt sends the rest if the size is the same and the chunks that the server has are still in
// the file (with [Upload.Verify], if no byte has changed), and otherwise the whole file.
var ErrChanged = errors.New("transfer: the file changed while it was uploaded")

// fingerprint tells versions of a file apart without reading it.
type fingerprint struct {
	Size    int64 `json:"size"`     // bytes
	ModTime int64 `json:"mtime_ns"` // nanoseconds since 1970
}

// source is the file of an upload, open for reading. It is safe for concurrent use.
type source struct {
	file *os.File
	at   fingerprint // when it was opened
}

// sumStep is how many bytes are hashed at once.
const sumStep = 256 << 10

//nolint:gochecknoglobals // a pool
var sumBuffers = sync.Pool{New: func() any { return new([sumStep]byte) }}

// openSource opens the file of an upload. Its errors are permanent if another attempt
// cannot help before a person does something.
func openSource(path string) (*source, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // do not wait for a named pipe
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, retry.Permanent(fmt.Errorf("%w; put the file back and retry the upload", err))
	case errors.Is(err, fs.ErrPermission):
		return nil, retry.Permanent(fmt.Errorf("%w; let the user of the worker read the file, and retry the upload", err))
	case err != nil:
		return nil, err
	}
	s := &source{file: file}
	info, err := file.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = retry.Permanent(fmt.Errorf("%s is not a regular file; name the files of a directory one by one", path))
	case info.Size() == 0 && s.hasContent():
		err = retry.Permanent(fmt.Errorf("%s has content but no size, as the files of /proc have: send it from standard "+
			"input, or a copy of it", path))
	}
	if err != nil {
		file.Close() //nolint:errcheck // the error of Stat counts
		return nil, err
	}
	s.at = fingerprintOf(info)
	return s, nil
}

// hasContent reports whether a byte can be read from a file whose size is 0, and stays 0.
func (s *source) hasContent() bool {
	n, _ := s.file.ReadAt(make([]byte, 1), 0)
	info, err := s.file.Stat()
	return n > 0 && err == nil && info.Size() == 0
}

func fingerprintOf(info fs.FileInfo) fingerprint {
	return fingerprint{Size: info.Size(), ModTime: info.ModTime().UnixNano()}
}

// unchanged returns an error that wraps ErrChanged if the file is not as it was when it was
// opened. A change that sets neither the size nor the time of modification is not found.
func (s *source) unchanged() error {
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	now := fingerprintOf(info)
	switch {
	case now.Size < s.at.Size:
		return fmt.Errorf("%w: %s shrank from %d to %d bytes", ErrChanged, s.file.Name(), s.at.Size, now.Size)
	case now.Size > s.at.Size:
		return fmt.Errorf("%w: %s grew from %d to %d bytes", ErrChanged, s.file.Name(), s.at.Size, now.Size)
	case now != s.at:
		return fmt.Errorf("%w: %s was written to", ErrChanged, s.file.Name())
	}
	return nil
}

// ReadAt is that of the file, with an error that wraps ErrChanged where the file ends too
// early.
func (s *source) ReadAt(p []byte, offset int64) (int, error) {
	n, err := s.file.ReadAt(p, offset)
	if errors.Is(err, io.EOF) && offset+int64(n) < s.at.Size {
		err = fmt.Errorf("%w: %s shrank to less than %d bytes", ErrChanged, s.file.Name(), offset+int64(len(p)))
	}
	return n, err
}

// sums are the checksums of a part of a file.
type sums struct {
	crc    uint32
	sha256 []byte // nil if it was not asked for
}

// sum reads a part of the file and returns its checksums, with the SHA-256 only if strong is
// set. A second reading of the same part comes from the page cache.
func (s *source) sum(ctx context.Context, from, to int64, strong bool) (sums, error) {
	var digest hash.Hash
	if strong {
		digest = sha256.New()
	}
	found := sums{}
	buffer := sumBuffers.Get().(*[sumStep]byte) //nolint:forcetypeassert // nothing else is put
	defer sumBuffers.Put(buffer)
	for from < to {
		if ctx.Err() != nil {
			return sums{}, context.Cause(ctx)
		}
		n, err := s.ReadAt(buffer[:min(sumStep, to-from)], from)
		found.crc = crc32.Update(found.crc, castagnoli(), buffer[:n])
		if strong {
			digest.Write(buffer[:n])
		}
		if from += int64(n); from < to && err != nil {
			return sums{}, err
		}
	}
	if strong {
		found.sha256 = digest.Sum(nil)
	}
	return found, nil
}

// digest returns the SHA-256 of the whole file in hexadecimal digits.
func (s *source) digest(ctx context.Context) (string, error) {
	whole, err := s.sum(ctx, 0, s.at.Size, true)
	return hex.EncodeToString(whole.sha256), err
}

// hashing computes the checksums of a part of a file in the background. Its results may be read
// after wait. A nil pointer has ended.
type hashing struct {
	from  int64
	ended chan struct{}

	sums
	err error
}

// hash begins to compute the checksums of a part of the file, as sum does. The caller must wait
// before it closes the file. The end of ctx ends the computation.
func (s *source) hash(ctx context.Context, from, to int64, strong bool) *hashing {
	h := &hashing{from: from, ended: make(chan struct{})}
	go func() {
		defer close(h.ended)
		h.sums, h.err = s.sum(ctx, from, to, strong)
	}()
	return h
}

// wait blocks until the computation has ended.
func (h *hashing) wait() {
	if h != nil {
		<-h.ended
	}
}
