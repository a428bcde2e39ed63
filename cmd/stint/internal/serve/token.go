package serve

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stintgo/stint/internal/bearer"
)

// TokenName is the name of the file, in the directory of a server, with the token that
// calls to its TCP address need.
const TokenName = "token"

// ReadToken returns the token in a file; see [bearer.Read]. It has at least 16 characters, so
// that it cannot be guessed.
func ReadToken(path string) (string, error) {
	const least = 16
	token, err := bearer.Read(path)
	if err == nil && len(token) < least {
		err = fmt.Errorf("%s %w of at least %d characters", path, bearer.ErrNoToken, least)
	}
	if errors.Is(err, bearer.ErrNoToken) {
		err = fmt.Errorf("%w; remove the file and start its server again, which makes a new one", err)
	}
	return token, err
}

// openToken returns the token in a file of the directory of a server, and creates it if
// there is none. The caller must hold the lock of the store.
func openToken(dir, name string) (string, error) {
	path := filepath.Join(dir, name)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if err := makeToken(path); err != nil {
			return "", fmt.Errorf("create a token: %w", err)
		}
	}
	return ReadToken(path)
}

// makeToken writes a token of 130 random bits to a file. The file has its name only when
// it is complete.
func makeToken(path string) (err error) {
	const ownerOnly = 0o600
	unfinished := path + ".new"
	if err := os.Remove(unfinished); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(unfinished, os.O_WRONLY|os.O_CREATE|os.O_EXCL, ownerOnly)
	if err != nil {
		return err
	}
	_, err = f.WriteString(rand.Text() + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(unfinished, path)
}
