package receiver

import (
	"context"
	"io"
	"os"
)

// storage is the data and the journal of a file in the directory of unfinished uploads, and the file
// handles of both, which are open while the storage has users. Data is written by position, by many
// users at once. A record is appended to the journal after the bytes that it speaks of have been written.
// The file's mutex guards the fields and all methods but copyTo; a user may read and write data
// without it.
type storage struct {
	disk              disk   // does not change
	dataName, logName string // paths; do not change

	data, log *os.File // nil without users, and if the users need no more than the receipt
	users     int
	logSize   int64    // where the next record begins
	owed      []record // see appendSoon
}

// create makes the data, reserved at its size, and then the journal with its first record. The caller
// becomes the user. After an error it must call close and remove.
func (s *storage) create(size int64, first record) (err error) {
	const exclusive = os.O_CREATE | os.O_EXCL | os.O_RDWR
	if s.data, err = os.OpenFile(s.dataName, exclusive, 0o600); err != nil {
		return err
	}
	s.users = 1
	if err := s.disk.allocate(s.data, 0, size); err != nil {
		return err
	}
	if s.log, err = os.OpenFile(s.logName, exclusive, 0o600); err != nil {
		return err
	}
	return s.append(first)
}

// append writes a record to the journal. The caller must be a user. What a failed write leaves is
// overwritten by the next one.
func (s *storage) append(rec record) error {
	lines, err := encode(append(s.owed, rec)...)
	if err != nil {
		return err
	}
	n, err := s.disk.writeAt(s.log, lines, s.logSize)
	if err != nil {
		return err
	}
	s.owed, s.logSize = nil, s.logSize+int64(n)
	return nil
}

// appendSoon appends a record of what cannot be refused. If that fails, as on a full disk, append writes the record
// before the next one. Should the process end earlier, the next one has to find out again what the record says.
func (s *storage) appendSoon(rec record) {
	if err := s.append(rec); err != nil {
		s.owed = append(s.owed, rec)
	}
}

// use opens data and journal until leave is called.
func (s *storage) use() (err error) {
	if s.users > 0 {
		s.users++
		return nil
	}
	if s.data, err = os.OpenFile(s.dataName, os.O_RDWR, 0); err != nil {
		return err
	}
	if s.log, err = os.OpenFile(s.logName, os.O_RDWR, 0); err != nil {
		_ = s.data.Close()
		return err
	}
	s.users = 1
	return nil
}

// leave ends a use.
func (s *storage) leave() {
	s.users--
	if s.users == 0 {
		s.close()
	}
}

// close closes data and journal, if they are open. Their errors are ignored: the
// journal has a record only of what was written without an error.
func (s *storage) close() {
	_ = s.data.Close()
	_ = s.log.Close()
	s.data, s.log = nil, nil
}

// remove removes the journal, then the data: a crash leaves data that no journal names, which Open removes. A journal
// alone may say that its data has got another name. After an error remove may be called again.
func (s *storage) remove() error {
	if err := s.disk.remove(s.logName); err != nil {
		return err
	}
	return s.disk.remove(s.dataName)
}

// copyTo writes the bytes of the data from an offset to another to w, unless ctx ends meanwhile. The caller must
// be a user.
func (s *storage) copyTo(ctx context.Context, w io.Writer, from, to int64) error {
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	for at := from; at < to; {
		if ctx.Err() != nil {
			return errClosing
		}
		if err := s.disk.check("read"); err != nil {
			return err
		}
		n, err := s.data.ReadAt(buf[:min(bufferSize, to-at)], at)
		if n == 0 {
			return err
		}
		if _, err := w.Write(buf[:n]); err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}

// copyFrom copies length bytes of another data file to an offset of the data, and syncs them, unless ctx
// ends meanwhile. The caller must be a user.
func (s *storage) copyFrom(ctx context.Context, name string, offset, length int64) error {
	from, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	if err := s.disk.allocate(s.data, offset, length); err != nil {
		return err
	}
	const piece = 64 << 20 // so that Close waits for that at most
	for at := int64(0); at < length; at += piece {
		if ctx.Err() != nil {
			return errClosing
		}
		if err := s.disk.copyRange(s.data, offset+at, from, at, min(piece, length-at)); err != nil {
			return err
		}
	}
	return s.disk.sync(s.data)
}
