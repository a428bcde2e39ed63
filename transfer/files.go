package transfer

import (
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/stintgo/stint/queue"
)

// Files returns the paths of the regular files that patterns name, in their order: a file, a
// pattern of [filepath.Match] such as "*.jpg", or a directory, which stands for all files
// below it in the order of their names. Symbolic links are followed where a pattern names
// them, and not below directories. A file that two patterns name is returned once.
//
// Errors: [queue.ErrInvalid] if a pattern is malformed or names no file, and those of the
// file system.
func Files(patterns ...string) ([]string, error) {
	var files []string
	seen := make(map[string]bool)
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("%w: pattern %q: %w", queue.ErrInvalid, pattern, err)
		}
		found := 0
		for _, name := range names {
			below, err := regularFiles(name)
			if err != nil {
				return nil, err
			}
			found += len(below)
			for _, file := range below {
				if !seen[file] {
					seen[file] = true
					files = append(files, file)
				}
			}
		}
		if found == 0 {
			return nil, fmt.Errorf("%w: %q names no file", queue.ErrInvalid, pattern)
		}
	}
	return files, nil
}

// regularFiles returns a file, or the files below a directory.
func regularFiles(name string) ([]string, error) {
	top, err := filepath.EvalSymlinks(name)
	if err != nil {
		return nil, err
	}
	var files []string
	err = filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		below, err := filepath.Rel(top, path)
		if err == nil {
			files = append(files, filepath.Join(name, below))
		}
		return err
	})
	return files, err
}
