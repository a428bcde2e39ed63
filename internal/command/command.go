// Package command starts the programs that are measured or needed.
package command

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
)

// Run runs a program in dir (empty for the present one) with an input that may
// be nil, and answers what it printed without the last line's end. It blocks
// until the program ends. The error has what the program said about it.
func Run(dir string, input io.Reader, name string, args ...string) (string, error) {
	var messages bytes.Buffer
	cmd := exec.Command(name, args...) //nolint:noctx // each of them ends by itself
	cmd.Dir, cmd.Stdin, cmd.Stderr = dir, input, &messages
	text, err := cmd.Output()
	if err != nil {
		said := strings.TrimSpace(messages.String())
		return "", fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, said)
	}
	return strings.TrimSpace(string(text)), nil
}

// Root is the directory of the module that is measured.
func Root() (string, error) {
	return Run("", nil, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/stintgo/stint")
}

// Need sees to it that programs are installed, each given as program:package.
// As root on Debian and its like it installs what is missing; elsewhere the
// error says the command that does.
func Need(programs ...string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	_, err = Run("", nil, filepath.Join(root, "tools", "need.sh"), programs...)
	return err
}
