//go:build linux

package crashtest_test

import (
	"bufio"
	"fmt"
	"os"
	"time"

	"github.com/stintgo/stint/queue"
)

// The events that handlers log.
const (
	begins = "begins"
	ends   = "ends"
)

// entry is one line of the log.
type entry struct {
	What    string
	Task    queue.ID
	Token   queue.Token
	Process string // its name
	At      int64  // see [now]
	Wall    int64  // the time of day that stores use, in nanoseconds since 1970
	Outcome string // of the end of a run
}

// log is a file that all processes append to. Each line is one write, so it is complete
// or missing whenever its process is killed, and a finished write survives the kill.
type log struct {
	file    *os.File
	process string
}

func openLog(name, process string) (*log, error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	return &log{file, process}, err
}

func (l *log) write(e entry) {
	wall := time.Now().UnixNano()
	line := fmt.Sprintf("%s %s %d %s %d %d %q\n", e.What, e.Task, e.Token, l.process, now(), wall, e.Outcome)
	if _, err := l.file.WriteString(line); err != nil {
		panic(err)
	}
}

// readLog returns all entries in the order in which they were written.
func readLog(name string) (entries []entry, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var e entry
		var id string
		_, err := fmt.Sscanf(lines.Text(), "%s %s %d %s %d %d %q",
			&e.What, &id, &e.Token, &e.Process, &e.At, &e.Wall, &e.Outcome)
		if err == nil {
			e.Task, err = queue.ParseID(id)
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", lines.Text(), err)
		}
		entries = append(entries, e)
	}
	return entries, lines.Err()
}
