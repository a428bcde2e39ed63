package view

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/stintgo/stint/shm"
)

// namesMax is how many processes a sentence names.
const namesMax = 8

// Processes returns the names of processes.
func Processes(all []shm.Process) string {
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = process(shm.ProcessUsage{Process: p})
	}
	return some(names)
}

// process returns the name of a process, with the number of its slots if it is not 1, and
// notes: that it is stopped, or has outlived another process.
func process(p shm.ProcessUsage) string {
	if p.PID == 0 && p.Outlived != "" {
		return "a process that outlived " + Plain(p.Outlived)
	}
	var notes []string
	if p.Slots > 1 {
		notes = append(notes, strconv.Itoa(p.Slots))
	}
	return fmt.Sprintf("%s[%d]", Plain(p.Name), p.PID) + inBrackets(append(notes, p.Notes()...))
}

func inBrackets(notes []string) string {
	if len(notes) == 0 {
		return ""
	}
	return " (" + Plain(strings.Join(notes, ", ")) + ")"
}

// some returns the first names and the number of the others.
func some(names []string) string {
	if more := len(names) - namesMax; more > 1 {
		return fmt.Sprintf("%s and %d others", strings.Join(names[:namesMax], ", "), more)
	}
	return strings.Join(names, ", ")
}

// Taken says which processes have the slots of a limit.
func Taken(name string, u shm.LimitUsage) string {
	text := fmt.Sprintf("%d of %d slots of %s are taken", u.Running, u.Max, Plain(name))
	switch {
	case u.Running != 1:
	case u.Max > 1:
		text = fmt.Sprintf("1 of %d slots of %s is taken", u.Max, Plain(name))
	default:
		text = fmt.Sprintf("the one slot of %s is taken", Plain(name))
	}
	if holders := slotHolders(u); holders != "" {
		text += ", by " + holders
	}
	if u.Waiting > 0 {
		text += fmt.Sprintf("; waiting: %d", u.Waiting)
	}
	return text
}

// slotHolders returns the names of the processes that hold slots.
func slotHolders(u shm.LimitUsage) string {
	var names []string
	for _, h := range u.Holders {
		if h.Slots > 0 && !h.Dead { // the slots of a dead process are as good as free
			names = append(names, process(h))
		}
	}
	return some(names)
}

// Regions prints a table of regions.
func Regions(w io.Writer, all []shm.Info) error {
	t := table(w)
	_, _ = fmt.Fprintln(t, "NAME\tSHARES\tMAX\tRUNNING\tWAITING\tOPEN\tHELD BY")
	for i := range all {
		r := &all[i]
		if r.Err != "" {
			_, _ = fmt.Fprintf(t, "%s\t-\t-\t-\t-\t-\t%s\n", Plain(r.Name), Plain(r.Err))
		}
		for _, l := range limits(r) {
			_, _ = fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\t%s\n",
				Plain(r.Name), l.what, l.Max, l.Running, l.Waiting, len(r.Processes), orDash(slotHolders(l.LimitUsage)))
		}
		for i, b := range r.Buckets {
			_, _ = fmt.Fprintf(t, "%s\t%s\t%g/s\t-\t%d\t%d\t%d of %d tokens left\n",
				Plain(r.Name), counted("rate", i, len(r.Buckets)), b.Rate, b.Waiting, len(r.Processes), b.Tokens, b.Capacity)
		}
	}
	return t.Flush()
}

// limit is a limit or a mutex of a region.
type limit struct {
	what string
	shm.LimitUsage
}

// limits returns the limits and mutexes of a region, numbered if there are several of a
// kind.
func limits(r *shm.Info) (all []limit) {
	add := func(what string, usages []shm.LimitUsage) {
		for i, u := range usages {
			all = append(all, limit{counted(what, i, len(usages)), u})
		}
	}
	add("slots", r.Slots)
	add("mutex", r.Mutexes)
	return all
}

// counted returns what, followed by the number i if there are n > 1 of its kind.
func counted(what string, i, n int) string {
	if n == 1 {
		return what
	}
	return fmt.Sprintf("%s %d", what, i)
}

// Region prints what each process holds in a region.
func Region(w io.Writer, r *shm.Info) error {
	if err := Regions(w, []shm.Info{*r}); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(w, "\n%s is open in %d of at most %d processes\n",
		Plain(r.Path), len(r.Processes), shm.ProcessesMax)
	rows := rowsOf(r)
	if len(rows) == 0 {
		return nil
	}
	t := table(w)
	_, _ = fmt.Fprintf(t, "\nPID\tPROCESS\tSHARES\tHOLDS\tWAITING\tTIER\n%s\n", strings.Join(rows, "\n"))
	return t.Flush()
}

// rowsOf returns a row for each process with what it holds or waits for. The tier is
// known only for processes that wait for a rate.
func rowsOf(r *shm.Info) (rows []string) {
	idle := slices.Clone(r.Processes)
	for _, l := range limits(r) {
		for _, h := range l.Holders {
			idle = slices.DeleteFunc(idle, func(p shm.Process) bool { return p == h.Process })
			rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%d\t%d\t-", pidOf(h.Process), holder(h), l.what, h.Slots, h.Waiting))
		}
	}
	for i, b := range r.Buckets {
		for _, w := range b.Waiters {
			idle = slices.DeleteFunc(idle, func(p shm.Process) bool { return fmt.Sprintf("%s[%d]", p.Name, p.PID) == w.Name })
			name, pid := waiter(w.Name)
			rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t-\t%d\t%s",
				pid, Plain(name), counted("rate", i, len(r.Buckets)), w.Waiting, w.Tier))
		}
	}
	for _, p := range idle {
		rows = append(rows, fmt.Sprintf("%s\t%s\t-\t-\t-\t-", pidOf(p), holder(shm.ProcessUsage{Process: p})))
	}
	return rows
}

// waiter splits the name of a process that waits for a rate: program[PID].
func waiter(name string) (program, pid string) {
	at := strings.LastIndexByte(name, '[')
	if at < 0 {
		return name, "-"
	}
	return name[:at], Plain(strings.TrimSuffix(name[at+1:], "]"))
}

// holder returns the name of a process without its PID.
func holder(h shm.ProcessUsage) string {
	switch {
	case h.Dead:
		return Plain(h.Name) + " (ended)"
	case h.PID == 0:
		return process(h)
	default:
		return Plain(h.Name) + inBrackets(h.Notes())
	}
}

// pidOf returns the PID of a process, or - if it is unknown.
func pidOf(p shm.Process) string {
	if p.PID == 0 {
		return "-"
	}
	return strconv.Itoa(p.PID)
}
