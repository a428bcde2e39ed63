// Package joblog records finished jobs, so that a run can be resumed.
//
// The file has the columns of GNU parallel's --joblog, so that the same scripts can read
// it: Seq, Host, Starttime, JobRuntime, Send, Receive, Exitval, Signal, Command,
// separated by tabs, one line per finished job. Starts are not recorded: a job without a
// line runs again, whether it was started or not, so recording starts would cost a second
// write per job and decide nothing.
package joblog

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"time"
)

// header is the first line of a log.
const header = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n"

const columns = 9

// Record is one line: the result of one job.
type Record struct {
	Seq     int // the job's number, from 1
	Start   time.Time
	Runtime time.Duration
	Receive int64 // bytes of output; 0 if not counted
	Exit    int
	Signal  syscall.Signal // that ended the job, or 0
	Command string
}

// Failed reports whether the job did not exit with status 0.
func (r *Record) Failed() bool { return r.Exit != 0 || r.Signal != 0 }

// appendLine appends the record's line to dst. Host is ":", as in GNU parallel for the
// local machine.
func (r *Record) appendLine(dst []byte) []byte {
	dst = strconv.AppendInt(dst, int64(r.Seq), 10)
	dst = append(dst, "\t:\t"...)
	dst = appendMillis(dst, r.Start.UnixMilli())
	dst = append(dst, '\t')
	dst = appendMillis(dst, r.Runtime.Milliseconds())
	dst = append(dst, "\t0\t"...)
	dst = strconv.AppendInt(dst, r.Receive, 10)
	dst = append(dst, '\t')
	dst = strconv.AppendInt(dst, int64(r.Exit), 10)
	dst = append(dst, '\t')
	dst = strconv.AppendInt(dst, int64(r.Signal), 10)
	dst = append(dst, '\t')
	dst = appendCommand(dst, r.Command)
	return append(dst, '\n')
}

// appendMillis writes milliseconds as seconds with three decimals.
func appendMillis(dst []byte, ms int64) []byte {
	ms = max(ms, 0) // a clock set back between two readings
	dst = strconv.AppendInt(dst, ms/1000, 10)
	dst = append(dst, '.')
	frac := ms % 1000
	return append(dst, byte('0'+frac/100), byte('0'+frac/10%10), byte('0'+frac%10))
}

// appendCommand writes newlines as NUL, which commands cannot contain, so that a record
// stays one line. GNU parallel does the same. Tabs are allowed: the command is the last
// column.
func appendCommand(dst []byte, command string) []byte {
	at := len(dst)
	dst = append(dst, command...)
	for i := at; i < len(dst); i++ {
		if dst[i] == '\n' {
			dst[i] = 0
		}
	}
	return dst
}

var errLine = errors.New("not a line of a job log")

// parsed has the fields that a resumed run needs. command aliases the line.
type parsed struct {
	seq     int
	failed  bool
	command []byte
}

// parseLine parses a line without its newline, including those of GNU parallel, which
// pads its numbers with blanks.
func parseLine(line []byte) (parsed, error) {
	cells := bytes.SplitN(line, []byte{'\t'}, columns)
	if len(cells) < columns {
		return parsed{}, fmt.Errorf("%w: %d of %d columns", errLine, len(cells), columns)
	}
	seq, err := parseInt(cells[0])
	if err != nil || seq < 1 {
		return parsed{}, fmt.Errorf("%w: Seq is %q", errLine, cells[0])
	}
	exit, err := parseInt(cells[6])
	if err != nil {
		return parsed{}, fmt.Errorf("%w: Exitval is %q", errLine, cells[6])
	}
	signal, err := parseInt(cells[7])
	if err != nil {
		return parsed{}, fmt.Errorf("%w: Signal is %q", errLine, cells[7])
	}
	return parsed{seq: seq, failed: exit != 0 || signal != 0, command: cells[8]}, nil
}

func parseInt(cell []byte) (int, error) { return strconv.Atoi(string(bytes.TrimSpace(cell))) }
