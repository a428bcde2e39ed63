package joblog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"strings"
)

// ErrChanged is wrapped by the error of a job that the log has under another
// command: the list of inputs, or the command, is not the one that the log was
// written for.
var ErrChanged = errors.New("the inputs or the command have changed since the job log was written")

// Match says what makes a job the same job in a resumed run.
type Match uint8

const (
	// MatchSeq asks for the same number and the same command. A job whose number the
	// log has under another command is an error.
	MatchSeq Match = iota
	// MatchCommand asks for the same command, wherever it stands. A command that the
	// list holds n times is done when the log has it n times.
	MatchCommand
)

// errHeader is the error of a file that is no job log, whatever else it is.
var errHeader = fmt.Errorf("%w: line 1 should be the header; the file is left as it was", errLine)

// doneSet is what the log says is done. Commands are kept as 64-bit hashes
// with a seed of this process: the log itself holds the text, so nothing that
// is stored depends on the hash. Two commands in 2³² have an even chance of
// one collision, and it would matter only at the same number.
type doneSet struct {
	match  Match
	seed   maphash.Seed
	jobs   map[key]entry
	counts map[uint64]int // for MatchCommand: the times that each is done
}

type entry struct {
	hash   uint64
	failed bool
}

func newDoneSet(match Match) *doneSet {
	return &doneSet{match: match, seed: maphash.MakeSeed(), jobs: map[key]entry{}}
}

// key tells the jobs of a log apart: by their number, and where the commands
// match also by their command, because each run of another list gives the same
// numbers out again.
type key struct {
	seq  int
	hash uint64
}

func (d *doneSet) key(seq int, hash uint64) key {
	if d.match == MatchCommand {
		return key{seq, hash}
	}
	return key{seq: seq}
}

// read takes in a whole log and returns the length in bytes of its sound part:
// a last line that is torn, or no line at all, is what a crash leaves of a
// write. Such a line anywhere else is an error, for it was not a crash; and so
// is a first line that is not the header or the beginning of it, for the file
// is somebody's and not a log.
func (d *doneSet) read(r io.Reader) (good int64, err error) {
	buffered := bufio.NewReaderSize(r, 256<<10)
	var bad error
	for n := 1; ; n++ {
		line, err := buffered.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return good, err
		}
		if err != nil && n == 1 && !strings.HasPrefix(header, string(line)) {
			return 0, errHeader
		}
		if err != nil {
			return good, nil //nolint:nilerr // the end: nothing more, or a line without its newline
		}
		if bad != nil {
			return good, bad
		}
		if bad = d.readLine(line, n); bad == nil {
			good += int64(len(line))
		} else if n == 1 {
			return 0, bad
		}
	}
}

func (d *doneSet) readLine(line []byte, n int) error {
	if n == 1 {
		// GNU parallel pads the columns of its header.
		if !bytes.HasPrefix(line, []byte("Seq\tHost\t")) {
			return errHeader
		}
		return nil
	}
	p, err := parseLine(line[:len(line)-1])
	if err != nil {
		return fmt.Errorf("line %d: %w", n, err)
	}
	// A job that failed and was run again has several lines; the last holds.
	e := entry{hash: maphash.Bytes(d.seed, p.command), failed: p.failed}
	d.jobs[d.key(p.seq, e.hash)] = e
	return nil
}

// prepare is called once after reading. Where failed jobs are to run again it
// forgets them.
func (d *doneSet) prepare(again bool) {
	if again {
		maps.DeleteFunc(d.jobs, func(_ key, e entry) bool { return e.failed })
	}
	if d.match != MatchCommand {
		return
	}
	d.counts = make(map[uint64]int, len(d.jobs))
	for _, e := range d.jobs {
		d.counts[e.hash]++
	}
}

// take reports whether a job is done. Each job of the list is asked for once:
// what has been matched is forgotten.
func (d *doneSet) take(seq int, command string) (bool, error) {
	hash := maphash.Bytes(d.seed, appendCommand(nil, command))
	if d.match == MatchCommand {
		if d.counts[hash] == 0 {
			return false, nil
		}
		d.counts[hash]--
		return true, nil
	}
	e, ok := d.jobs[d.key(seq, hash)]
	if !ok {
		return false, nil
	}
	if e.hash != hash {
		return false, fmt.Errorf("job %d: %w", seq, ErrChanged)
	}
	delete(d.jobs, d.key(seq, hash))
	return true, nil
}
