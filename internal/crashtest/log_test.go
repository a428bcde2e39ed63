//go:build linux

package crashtest_test

import (
	"bufio"
	"fmt"
	"os"
	"time"

	"github.com/stintgo/stint/queue"
)

// What handlers write down.
const (
	begins = "begins"
	ends   = "ends"
)

// entry is one line of the log.
type entry struct {
	What    string
	Task    queue.ID
	Token   queue.Token
	Who     string // the process
	At      int64  // see [now]
	Wall    int64  // the time of day, in nanoseconds since 1970, which is what a store goes by
	Outcome string // of what ends
}

// log is a file that all processes append to. A line is one write, so it is whole
// or not there, whenever its process is killed; and a write has survived that
// once it is done.
type log struct {
	file *os.File
	who  string
}

func openLog(name, who string) (*log, error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	return &log{file, who}, err
}

func (l *log) write(e entry) {
	wall := time.Now().UnixNano()
	line := fmt.Sprintf("%s %s %d %s %d %d %q\n", e.What, e.Task, e.Token, l.who, now(), wall, e.Outcome)
	if _, err := l.file.WriteString(line); err != nil {
		panic(err)
	}
}

// readLog returns all that was written, in the order in which it was.
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
			&e.What, &id, &e.Token, &e.Who, &e.At, &e.Wall, &e.Outcome)
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
