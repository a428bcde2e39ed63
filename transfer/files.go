package transfer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stintgo/stint/queue"
)

// Found is what names of files and directories stand for.
type Found struct {
	Files  []string // paths of regular files
	Left   []string // paths of symbolic links, sockets and devices below directories
	Unread []error  // of directories that cannot be read; each has the path
}

// Files returns the regular files that names stand for, in their order. A name is a file, a
// directory (all files below it, in the order of their names) or, if neither exists, a
// pattern of [filepath.Match] such as "*.jpg". Symbolic links are followed where a
// name or a pattern names them. Below directories they are left out, as are sockets and
// devices. A directory that cannot be read is left out, too. A file that two names stand
// for is returned once.
//
// Errors: [queue.ErrInvalid] if a pattern is malformed or a name stands for no regular file, and
// those of the file system.
func Files(names ...string) (Found, error) { return expand(names, filepath.Glob) }

// FilesNamed is [Files] for names that are not patterns, such as the lines of a list.
func FilesNamed(names ...string) (Found, error) {
	return expand(names, func(string) ([]string, error) { return nil, nil })
}

// expand is Files. missing returns what a name stands for if there is nothing of that name.
func expand(names []string, missing func(string) ([]string, error)) (all Found, err error) {
	seen := make(map[string]bool)
	for _, name := range names {
		tops := []string{name}
		if _, err := os.Lstat(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Found{}, err
		} else if err != nil {
			if tops, err = missing(name); err != nil {
				return Found{}, fmt.Errorf("%w: there is no file %q, and as a pattern: %w", queue.ErrInvalid, name, err)
			}
		}
		found := 0
		for _, top := range tops {
			below, err := regularFiles(top)
			if err != nil {
				return Found{}, err
			}
			found += len(below.Files) + len(below.Unread)
			all.Left = append(all.Left, below.Left...)
			all.Unread = append(all.Unread, below.Unread...)
			for _, file := range below.Files {
				if !seen[file] {
					seen[file] = true
					all.Files = append(all.Files, file)
				}
			}
		}
		switch {
		case found > 0:
		case len(tops) == 0:
			return Found{}, fmt.Errorf("%w: %q names no file", queue.ErrInvalid, name)
		default:
			return Found{}, fmt.Errorf("%w: %q has no regular file", queue.ErrInvalid, name)
		}
	}
	return all, nil
}

// regularFiles returns a file, or the files below a directory, and what else is there.
func regularFiles(name string) (found Found, err error) {
	top, err := filepath.EvalSymlinks(name)
	if err != nil {
		return Found{}, err
	}
	err = filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil && entry != nil && entry.IsDir():
			found.Unread = append(found.Unread, err)
			return nil
		case err != nil || entry.IsDir():
			return err
		}
		below, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		if path = filepath.Join(name, below); entry.Type().IsRegular() {
			found.Files = append(found.Files, path)
		} else {
			found.Left = append(found.Left, path)
		}
		return nil
	})
	return found, err
}
