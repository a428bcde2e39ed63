package receiver

import (
	"errors"
	"io/fs"
	"os"
)

// freshSuffix is of a file that is written to replace another one.
const freshSuffix = ".new"

// disk is the calls that change files or take long. Tests make them fail, or end the process in them.
type disk struct {
	// fault is called before each call with its name and the number of bytes. If fault
	// returns an error, the call handles done bytes and returns that error. If fault is nil,
	// no call fails.
	fault func(op string, bytes int) (done int, err error)
}

func (d disk) check(op string) error {
	if d.fault == nil {
		return nil
	}
	_, err := d.fault(op, 0)
	return err
}

func (d disk) allocate(f *os.File, offset, length int64) error {
	if err := d.check("allocate"); err != nil {
		return err
	}
	return allocate(f, offset, length)
}

func (d disk) writeAt(f *os.File, p []byte, offset int64) (int, error) {
	if d.fault == nil {
		return f.WriteAt(p, offset)
	}
	done, err := d.fault("write", len(p))
	if err == nil {
		return f.WriteAt(p, offset)
	}
	done, _ = f.WriteAt(p[:done], offset)
	return done, errors.Join(err, d.check("torn"))
}

// copyRange copies length bytes at source of a file to an offset of another.
func (d disk) copyRange(to *os.File, offset int64, from *os.File, source, length int64) error {
	if err := d.check("copy"); err != nil {
		return err
	}
	return copyRange(to, offset, from, source, length)
}

func (d disk) sync(f *os.File) error {
	if err := d.check("sync"); err != nil {
		return err
	}
	return f.Sync()
}

// syncDir makes the names in a directory survive a loss of power.
func (d disk) syncDir(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return d.sync(f)
}

// rename gives a file another name, unless a file has it: then the error is [os.ErrExist].
func (d disk) rename(from, to string) error {
	if err := d.check("rename"); err != nil {
		return err
	}
	return rename(from, to)
}

// replace writes a file in one step, over the one that has the name.
func (d disk) replace(name string, content []byte) error {
	fresh := name + freshSuffix
	if err := d.check("replace"); err != nil {
		return err
	}
	err := os.WriteFile(fresh, content, 0o600)
	if err == nil {
		err = d.check("replaced")
	}
	if err == nil {
		err = os.Rename(fresh, name)
	}
	if err != nil {
		return errors.Join(err, d.remove(fresh))
	}
	return nil
}

// remove removes a file if there is one.
func (d disk) remove(name string) error {
	if err := d.check("remove"); err != nil {
		return err
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// linkAndRemove is a rename that never replaces a file, for systems that have none. See
// publication.unlink for a crash in between.
func linkAndRemove(from, to string) error {
	if err := os.Link(from, to); err != nil {
		return err
	}
	if err := os.Remove(from); err != nil {
		return errors.Join(err, os.Remove(to)) // after an error the file does not have its name
	}
	return nil
}
