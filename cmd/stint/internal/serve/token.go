package serve

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/stintgo/stint/internal/ownership"
)

// TokenName is the name of the file, in the directory of a server, with the token that
// calls to its TCP address need.
const TokenName = "token"

// isToken reports whether a text is a token: characters that HTTP allows after Bearer (RFC
// 6750, section 2.1), and at least 16 of them, so that a token cannot be guessed.
func isToken(text string) bool {
	const (
		least, most = 16, 512
		characters  = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~+/=-"
	)
	return len(text) >= least && len(text) <= most && strings.Trim(text, characters) == ""
}

// ReadToken returns the token in a file. The file must belong to the user of this process
// or to root, and no other user may read it.
func ReadToken(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // do not wait for a named pipe
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // only read
	if err := ownership.File(f); err != nil {
		return "", err
	}
	const enough = 1 << 10
	text, err := io.ReadAll(io.LimitReader(f, enough))
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if !isToken(token) {
		return "", fmt.Errorf("%s does not hold a token, which is a line of 16 to 512 letters and digits; "+
			"remove the file, and start the server again, which creates a new one", path)
	}
	return token, nil
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
