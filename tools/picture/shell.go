package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
)

// shell is a shell on a pseudo-terminal, and the screen of that.
type shell struct {
	cmd  *exec.Cmd
	pty  *os.File
	rows int
	read sync.WaitGroup // the goroutine that reads the pseudo-terminal

	mu     sync.Mutex
	screen *vt.Emulator // guarded by mu
}

// newShell starts sh, which is everywhere and says the least, in dir.
func newShell(dir string, rows int) (*shell, error) {
	cmd := exec.Command("sh", "-i") //nolint:noctx // ended by close, in the order that a terminal needs
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + dir + ":" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C.UTF-8", "TERM=xterm-256color",
		"PS1=\x1b[1;32m$\x1b[0m ", "PS2=> ",
	}
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: uint16(rows), Cols: columns})
	if err != nil {
		return nil, fmt.Errorf("start sh on a pseudo-terminal: %w", err)
	}
	s := &shell{cmd: cmd, pty: f, rows: rows, screen: vt.NewEmulator(columns, rows)}
	s.read.Go(s.follow)
	return s, nil
}

// follow feeds the screen until the terminal is closed.
func (s *shell) follow() {
	buf := make([]byte, 1<<16)
	for {
		n, err := s.pty.Read(buf)
		s.mu.Lock()
		_, _ = s.screen.Write(buf[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// child is the process that the shell waits for, "" if there is none.
func (s *shell) child() string {
	pid := s.cmd.Process.Pid
	pids, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(pids))
}

// text is what the screen shows.
func (s *shell) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.screen.String()
}

// draw returns the rows of the screen as SVG.
func (s *shell) draw(cursor bool) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := make([]string, s.rows)
	at := s.screen.CursorPosition()
	for y := range rows {
		cells := make([]uv.Cell, columns)
		for x := range cells {
			cells[x] = *s.screen.CellAt(x, y)
		}
		rows[y] = drawRow(cells)
		if cursor && y == at.Y {
			rows[y] += drawCursor(at.X)
		}
	}
	return rows
}

// close ends the shell first: only that ends a read of its terminal, which may
// then be closed.
func (s *shell) close() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.read.Wait()
	_ = s.pty.Close()
}
