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

// ErrChanged is wrapped by the error of a job that the log has under another command: the
// inputs or the command differ from those that the log was written for.
var ErrChanged = errors.New("the inputs or the command have changed since the job log was written")

// Match says how a resumed run recognizes a job.
type Match uint8

const (
	// MatchSeq compares number and command. A job whose number the log has under another
	// command is an error.
	MatchSeq Match = iota
	// MatchCommand compares the command, at any position. A command that the list
	// contains n times is done when the log has it n times; a line after a failure with
	// the same number and command is that job's next attempt.
	MatchCommand
)

// errHeader is the error of a file that is not a job log.
var errHeader = fmt.Errorf("%w: line 1 should be the header; the file is left as it was", errLine)

// doneSet has the jobs that the log has as done. It stores 64-bit hashes of commands,
// with a seed of this process: the log itself has the text, so nothing that is stored
// depends on the hash. Among 2³² commands the probability of a collision is about one
// half, and a collision matters only at the same number.
type doneSet struct {
	match  Match
	seed   maphash.Seed
	jobs   map[key]entry
	counts map[uint64]int // for MatchCommand: how often each is done
}

type entry struct {
	hash   uint64
	failed bool  // by the last line
	ok     int32 // lines of success; under MatchCommand each is a job of its own
}

func newDoneSet(match Match) *doneSet {
	return &doneSet{match: match, seed: maphash.MakeSeed(), jobs: map[key]entry{}}
}

// key identifies a job of a log: by its number, and under MatchCommand also by its
// command, because another list uses the same numbers again.
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

// read reads a whole log and returns the length in bytes of its valid part: a crash can
// leave an incomplete last line. An invalid line anywhere else is an error, since no
// crash causes it; so is a first line that is not the header or a prefix of it, since the
// file is then not a job log.
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
			return good, nil //nolint:nilerr // the end: no more lines, or a line without its newline
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
	// A job that failed and was run again has several lines; the last one counts.
	hash := maphash.Bytes(d.seed, p.command)
	k := d.key(p.seq, hash)
	e := entry{hash: hash, failed: p.failed, ok: d.jobs[k].ok}
	if !p.failed {
		e.ok++
	}
	d.jobs[k] = e
	return nil
}

// prepare is called once after reading. If failed jobs are to run again, it removes them.
func (d *doneSet) prepare(again bool) {
	if d.match != MatchCommand {
		if again {
			maps.DeleteFunc(d.jobs, func(_ key, e entry) bool { return e.failed })
		}
		return
	}
	d.counts = make(map[uint64]int, len(d.jobs))
	for _, e := range d.jobs {
		d.counts[e.hash] += int(e.ok)
		if e.failed && !again {
			d.counts[e.hash]++
		}
	}
}

// take reports whether a job is done. It is called once for each job of the list, and
// removes the match.
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
