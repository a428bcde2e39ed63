package serve

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// checkUploadsDir refuses a directory for received files in which the server keeps its own:
// a client that may only upload could give a file the name of the server's token.
func checkUploadsDir(dir, uploads string) error {
	own, received := realPath(dir), realPath(uploads)
	inside, err := filepath.Rel(own, received)
	if err != nil {
		return nil //nolint:nilerr // there is no way from one to the other
	}
	first, _, _ := strings.Cut(inside, string(filepath.Separator))
	if slices.Contains([]string{".", storeName, logsName}, first) {
		return fmt.Errorf("--uploads %s: the server keeps its own files there: choose another directory", uploads)
	}
	return nil
}

// realPath returns an absolute path without symbolic links, whose end may not exist.
func realPath(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	for p, rest := abs, ""; ; p, rest = filepath.Dir(p), filepath.Join(filepath.Base(p), rest) {
		if found, err := filepath.EvalSymlinks(p); err == nil {
			return filepath.Join(found, rest)
		}
		if p == filepath.Dir(p) {
			return abs
		}
	}
}
