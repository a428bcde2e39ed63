package receiver

import "os"

// disk is the calls that a full or broken disk makes fail. Tests replace them.
type disk struct {
	allocate func(f *os.File, offset, length int64) error
	writeAt  func(f *os.File, p []byte, offset int64) (int, error)
}

func newDisk() disk {
	return disk{allocate: allocate, writeAt: (*os.File).WriteAt}
}

// linkAndRemove is a rename that never replaces a file, for systems that have none.
func linkAndRemove(from, to string) error {
	if err := os.Link(from, to); err != nil {
		return err
	}
	return os.Remove(from)
}

// syncDir makes the names in a directory survive a loss of power.
func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
