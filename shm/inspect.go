package shm

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/shm/internal/arena"
	"github.com/stintgo/stint/shm/internal/pool"
)

// Info is the state of a region.
type Info struct {
	Name      string       `json:"name"`
	Path      string       `json:"path"`
	Geometry  Geometry     `json:"geometry"`
	Processes []Process    `json:"processes"` // that live and have it open
	Slots     []LimitUsage `json:"slots"`     // of each limit
	Mutexes   []LimitUsage `json:"mutexes"`   // of each mutex, which is a limit of one slot

	Buckets []stint.BucketUsage `json:"buckets,omitempty"` // of each rate
	Err     string              `json:"err,omitempty"`     // why nothing more is known; only of [List]
}

// LimitUsage is the state of a limit.
type LimitUsage struct {
	Max     int            `json:"max"`
	Running int            `json:"running"` // slots that the living hold
	Waiting int            `json:"waiting"`
	Holders []ProcessUsage `json:"holders"`
}

// ProcessUsage is what a process holds of a limit, and what of it waits.
type ProcessUsage struct {
	Process
	Slots   int `json:"slots"`
	Waiting int `json:"waiting"`
	// Dead says that the process has died, and nobody has asked for its slots since:
	// the next to do so gets them. Its name may be gone.
	Dead bool `json:"dead,omitempty"`
}

// Inspect tells who shares a region, and what they hold. It does not join, so it
// works as well while [ProcessesMax] processes have the region open, and changes
// nothing. While they take and release, the numbers are of times that are close
// together.
//
// It fails with [ErrMismatch] if the file is no region or one that this version of
// the package does not know, or that is of another time namespace, with [ErrNotOurs],
// or with what else there is in the way: that nobody has finished making it, or that it
// is of before the machine was started.
func Inspect(name string) (Info, error) {
	info, err := inspect(name)
	if err != nil {
		return info, fmt.Errorf("inspect shared region: %w", err)
	}
	return info, nil
}

func inspect(name string) (info Info, err error) {
	info = Info{
		Name: name, Geometry: Geometry{Slots: []int{}},
		Processes: []Process{}, Slots: []LimitUsage{}, Mutexes: []LimitUsage{}, // lists in JSON, also where there are none
	}
	if info.Path, err = pathOf(name, arena.Private); err != nil {
		return info, err
	}
	a, err := arena.Look(info.Path)
	if err != nil {
		return info, err
	}
	defer a.Close() //nolint:errcheck // it was read only
	if info.Geometry, err = geometryOf(a.Geometry()); err != nil {
		return info, err
	}
	shape := info.Geometry.shape()
	if n := len(a.Words()); n != shape.Words() {
		return info, fmt.Errorf("%w: it has %d words for a geometry of %d", ErrMismatch, n, shape.Words())
	}
	p := pool.New(a.Words(), shape, host{&Region{arena: a}})
	seen := &processes{arena: a, seen: make(map[pool.Party]Process)}
	for _, party := range p.Parties() {
		info.Processes = append(info.Processes, seen.look(party))
	}
	for limit, n := range shape.Limits {
		usage := usageOf(n, p.Usage(limit), seen)
		if limit < len(info.Geometry.Slots) {
			info.Slots = append(info.Slots, usage)
		} else {
			info.Mutexes = append(info.Mutexes, usage)
		}
	}
	for i, rate := range info.Geometry.Rates {
		info.Buckets = append(info.Buckets, bucketUsage(rate.meter(), p.Line(i)))
	}
	return info, nil
}

func usageOf(n int, now pool.Usage, seen *processes) LimitUsage {
	u := LimitUsage{Max: n, Running: now.Slots, Waiting: now.Waiting, Holders: []ProcessUsage{}}
	for _, h := range now.Holders {
		process := Process{PID: h.PID, Name: h.Name}
		if !h.Dead {
			process = seen.look(h.Party)
		}
		u.Holders = append(u.Holders, ProcessUsage{process, h.Slots, h.Waiting, h.Dead})
	}
	return u
}

// List inspects all regions in this user's directory in /dev/shm, in the order of
// their names. Of one that cannot be inspected it says why in Err.
func List() ([]Info, error) {
	names, err := files()
	if err != nil {
		return nil, fmt.Errorf("list shared regions: %w", err)
	}
	var all []Info
	for _, name := range names {
		info, err := inspect(name)
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue // it was removed meanwhile
		case err != nil:
			info.Err = err.Error()
		}
		all = append(all, info)
	}
	return all, nil
}

func files() (names []string, err error) {
	dir, err := arena.Private()
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // nobody has made a region
	}
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, err
}

// Remove deletes a region that no living process has open, with what the dead left
// in it. It fails with [ErrInUse], which names who has it open, with [ErrStuck],
// [ErrNotOurs], or [ErrMismatch] if the file is something else. Regions that [Inspect]
// refuses are removed: of before the machine was started, of other versions, and those
// that nobody has finished, from which an empty file cannot be told. It waits like
// [Open] while another process opens or removes it.
func Remove(name string) error {
	path, err := pathOf(name, arena.Private)
	if err == nil {
		err = named(arena.Remove(path, patienceMax), path)
	}
	if err != nil {
		return fmt.Errorf("remove shared region: %w", err)
	}
	return nil
}

// named adds to the error of a region that is in use who uses it, if that can be
// seen.
func named(err error, path string) error {
	if !errors.Is(err, ErrInUse) {
		return err
	}
	info, unknown := inspect(path)
	if unknown != nil || len(info.Processes) == 0 {
		return fmt.Errorf("%w: `fuser -v %s` tells who has it open", err, path)
	}
	var users []string
	for _, p := range info.Processes {
		users = append(users, describe(p))
	}
	return fmt.Errorf("%w by %s", err, strings.Join(users, ", "))
}
