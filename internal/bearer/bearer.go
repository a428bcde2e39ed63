// Package bearer reads from files the tokens that HTTP calls bearer tokens: RFC 6750.
package bearer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/stintgo/stint/internal/ownership"
)

// MaxToken is the length of the longest token in bytes: servers take about as much of a header.
const MaxToken = 8 << 10

// ErrNoToken is wrapped by the error for a file with another content.
var ErrNoToken = errors.New("does not hold a token")

// characters are those of a token: RFC 6750, section 2.1.
const characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~+/=-"

// Read returns the token in a file, without the white space around it. The file must belong
// to the user of this process or to root, and no other user may read it.
func Read(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // do not wait for a named pipe
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // only read
	if err := ownership.File(f); err != nil {
		return "", err
	}
	const whiteSpace = 2
	text, err := io.ReadAll(io.LimitReader(f, MaxToken+whiteSpace+1))
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if token == "" || len(token) > MaxToken || len(text) > MaxToken+whiteSpace || strings.Trim(token, characters) != "" {
		return "", fmt.Errorf("%s %w, which is a line of up to %d letters, digits and ._~+/=-", path, ErrNoToken, MaxToken)
	}
	return token, nil
}
