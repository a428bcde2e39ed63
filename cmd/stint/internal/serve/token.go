package serve

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/stintgo/stint/internal/ownership"
)

// TokenName is the file, in the directory of a server, of the token that calls to its
// TCP address have to bring.
const TokenName = "token"

// tokenPattern is what a token looks like: what HTTP allows after Bearer, and not so
// short that it can be guessed.
var tokenPattern = regexp.MustCompile(`^[A-Za-z0-9._~+/=-]{16,512}$`)

// ReadToken returns the token in a file, which must belong to the user of this process
// or to root, and which no other user may read.
func ReadToken(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // no waiting for a named pipe
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was read
	if err := ownership.File(f); err != nil {
		return "", err
	}
	const enough = 1 << 10
	text, err := io.ReadAll(io.LimitReader(f, enough))
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if !tokenPattern.MatchString(token) {
		return "", fmt.Errorf("%s does not hold a token, which is a line of 16 to 512 letters and digits: "+
			"remove the file, and start the server again with --listen, which makes another", path)
	}
	return token, nil
}

// openToken returns the token of the server in a directory, and makes it if there is
// none. The lock of the store is held.
func openToken(dir string) (string, error) {
	path := filepath.Join(dir, TokenName)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if err := makeToken(path); err != nil {
			return "", fmt.Errorf("make a token for --listen: %w", err)
		}
	}
	return ReadToken(path)
}

// makeToken writes a token of 130 random bits to a file, which is complete when it has
// its name.
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
