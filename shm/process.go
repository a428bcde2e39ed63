package shm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stintgo/stint/shm/internal/arena"
	"github.com/stintgo/stint/shm/internal/pool"
)

// Process is a process that shares a region.
type Process struct {
	PID  int    `json:"pid"`  // in the process's own PID namespace
	Name string `json:"name"` // of its program, at most 32 bytes

	// Stopped says that a signal or a debugger has stopped the process: what it holds is
	// released after it continues, or ends. It is not set for a process of another PID
	// namespace, or one that this process may not inspect.
	Stopped bool `json:"stopped,omitempty"`

	// Outlived is set if the process that opened the region has ended and processes that
	// inherited its open file keep what it held. It names the process that has ended, as
	// name[PID]. PID and Name are then those of the process with the lowest PID that has
	// the open file, and Others is the number of further ones. PID is 0 and Name is empty
	// if this process may not inspect any of them.
	Outlived string `json:"outlived,omitempty"`
	Others   int    `json:"others,omitempty"`
}

// describe formats a process for people, as in "sleep[812] (stopped, outlived sh[811])".
func describe(p Process) string {
	if p.PID == 0 && p.Outlived != "" {
		return "a process that outlived " + p.Outlived
	}
	text := fmt.Sprintf("%s[%d]", p.Name, p.PID)
	if notes := p.Notes(); len(notes) > 0 {
		text += " (" + strings.Join(notes, ", ") + ")"
	}
	return text
}

// Notes returns what is remarkable about the process besides its name and PID, for
// people: nothing, or phrases such as "stopped".
func (p Process) Notes() (notes []string) {
	if p.Stopped {
		notes = append(notes, "stopped")
	}
	switch {
	case p.PID == 0 || p.Outlived == "":
	case p.Others > 0:
		notes = append(notes, fmt.Sprintf("with %d more, outlived %s", p.Others, p.Outlived))
	default:
		notes = append(notes, "outlived "+p.Outlived)
	}
	return notes
}

// processes looks up the processes of living participants. It looks up each of them once,
// so that all that Inspect returns is of one time.
type processes struct {
	proc    arena.Proc
	seen    map[pool.Party]Process
	keepers map[int][]arena.Keeper // read on first use
}

func (p *processes) look(party pool.Party) Process {
	process, known := p.seen[party]
	if !known {
		process = p.identify(party)
		process.Stopped = p.proc.Stopped(process.PID)
		p.seen[party] = process
	}
	return process
}

// survivors caches the processes that keep what ended participants held: to find them,
// the descriptors of all processes must be read.
type survivors map[pool.Party]survivor

type survivor struct {
	Process
	found int64 // time by arena.Now, in ns
}

// surviveFor is how long a survivor is cached, in ns.
const surviveFor = int64(5 * time.Second)

// look returns the process to show for a living participant. If that is not the one that
// registered, look adds it to next. It searches only if no process has the registered
// PID.
func (known survivors) look(party pool.Party, all *processes, next survivors) Process {
	if !arena.Ended(party.PID) {
		return Process{PID: party.PID, Name: party.Name}
	}
	now := arena.Now()
	s, found := known[party]
	if !found || now-s.found >= surviveFor {
		s = survivor{all.identify(party), now}
	}
	next[party] = s
	return s.Process
}

// identify returns the process that keeps the life lock of a participant. That is the
// process that registered as the participant, unless it is known to have ended.
func (p *processes) identify(party pool.Party) Process {
	self := Process{PID: party.PID, Name: party.Name}
	if holds, known := p.proc.Holds(party.PID, party.Life); holds || !known {
		return self
	}
	if p.keepers == nil {
		p.keepers = p.proc.Keepers()
	}
	keepers := p.keepers[party.Life]
	other := func(k arena.Keeper) bool { return slices.Contains(k.Numbers, party.PID) }
	if slices.ContainsFunc(keepers, other) || len(keepers) == 0 && !arena.SeesAll() {
		return self // it lives, or may live, in another PID namespace
	}
	outlived := Process{Outlived: describe(self), Others: max(len(keepers)-1, 0)}
	if len(keepers) > 0 {
		outlived.PID, outlived.Name = keepers[0].PID, keepers[0].Name
	}
	return outlived
}
