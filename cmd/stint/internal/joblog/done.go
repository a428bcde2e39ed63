package joblog

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"strings"
)

// ErrChanged is wrapped by the error of a job whose number has another command in the log:
// the inputs or the command differ from those that the log was written for.
var ErrChanged = errors.New("the inputs or the command have changed since the job log was written")

// Match says how a resumed run recognizes a job.
type Match uint8

const (
	// MatchSeq compares number and command. A job whose number has another command in the
	// log is an error.
	MatchSeq Match = iota
	// MatchCommand compares the command alone. Each job of the list is matched with one job
	// of the log that has the same command, if one is left: first with those that are done,
	// then with those that run again. The line of a job that runs again has the number of the
	// job that it was matched with. The line of a new job has a number that no line of the
	// log has with this command. So lines with the same number and command are attempts of
	// one job, and the last line counts.
	MatchCommand
)

// errHeader is the error of a file that is not a job log.
var errHeader = fmt.Errorf("%w: line 1 should be the header; the file is left as it was", errLine)

// doneSet has the jobs of the log. It keeps 64-bit hashes of the commands, with a seed of this
// process: the log has the text of the commands, so no file depends on the hash. Among 2³²
// commands the probability of a collision is about one half. Under MatchSeq a collision
// matters only between commands of the same number.
type doneSet struct {
	match Match
	seed  maphash.Seed
	jobs  map[key]entry

	rerunFailed bool // failed jobs run again
	// done and rerun are for MatchCommand: by the hash of a command, the number of the first of
	// its jobs that are done, and of those that run again. entry.next links the others.
	done, rerun map[uint64]int
}

// entry is a job of the log.
type entry struct {
	hash   uint64
	failed bool // in its last line
	taken  bool // matched with a job of the list
	// next is for MatchCommand. Until the entry is taken, it is the number of the next job in
	// the linked list of done or rerun, 0 at its end. Then it is the number of the job that
	// was matched with the entry.
	next int
}

func newDoneSet(match Match) *doneSet {
	return &doneSet{match: match, seed: maphash.MakeSeed(), jobs: map[key]entry{}}
}

// key identifies a job of a log: by its number, and under MatchCommand also by its command,
// because several lists of jobs can have the same numbers.
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
// leave an incomplete last line. An invalid line anywhere else is an error, because no
// crash causes it. A first line that is not the header or a prefix of it is an error too,
// because the file is not a job log.
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
	d.jobs[d.key(p.seq, hash)] = entry{hash: hash, failed: p.failed}
	return nil
}

// prepare is called once after reading. rerunFailed is whether failed jobs run again.
func (d *doneSet) prepare(rerunFailed bool) {
	d.rerunFailed = rerunFailed
	if d.match != MatchCommand {
		return
	}
	d.done, d.rerun = make(map[uint64]int, len(d.jobs)), map[uint64]int{}
	for k, e := range d.jobs {
		first := d.done
		if d.runsAgain(e) {
			first = d.rerun
		}
		e.next, first[e.hash] = first[e.hash], k.seq
		d.jobs[k] = e
	}
}

// take reports whether a job is done, and returns the number for its line in the log if it is
// not. It is called once for each job of the list.
func (d *doneSet) take(seq int, command string) (number int, done bool, err error) {
	hash := maphash.Bytes(d.seed, appendCommand(nil, command))
	if d.match == MatchCommand {
		number, done = d.takeCommand(seq, hash)
		return number, done, nil
	}
	e, ok := d.jobs[key{seq: seq}]
	delete(d.jobs, key{seq: seq})
	switch {
	case !ok || d.runsAgain(e):
		return seq, false, nil
	case e.hash != hash:
		return seq, false, fmt.Errorf("job %d: %w", seq, ErrChanged)
	}
	return seq, true, nil
}

// takeCommand is take for MatchCommand.
func (d *doneSet) takeCommand(seq int, hash uint64) (number int, done bool) {
	if number = d.pop(false, seq, hash); number != 0 {
		return number, true
	}
	if number = d.pop(true, seq, hash); number != 0 {
		return number, false
	}
	// If the log has a job with this number and command, an earlier job of the list was matched
	// with it and leaves its own number unused, which is entry.next.
	for number = seq; ; {
		e, ok := d.jobs[key{number, hash}]
		if !ok {
			return number, false
		}
		number = e.next
	}
}

// pop matches a job of the list with a job of the log that is done, or, with rerun, that runs
// again. It prefers the job with the same number. It returns the number of the job of the log,
// or 0 if none is left.
func (d *doneSet) pop(rerun bool, seq int, hash uint64) (number int) {
	own := key{seq, hash}
	if e, ok := d.jobs[own]; ok && !e.taken && d.runsAgain(e) == rerun {
		e.taken = true
		d.jobs[own] = e
		return seq
	}
	first := d.done
	if rerun {
		first = d.rerun
	}
	for number = first[hash]; number != 0; number = first[hash] {
		k := key{number, hash}
		e := d.jobs[k]
		first[hash] = e.next
		taken := e.taken
		if e.taken, e.next = true, seq; taken {
			e.next = number // the job of the list with this number was matched with it
		}
		d.jobs[k] = e
		if !taken {
			break
		}
	}
	return number
}

// runsAgain reports whether a job of the log runs again.
func (d *doneSet) runsAgain(e entry) bool { return e.failed && d.rerunFailed }
