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
	Processes []Process    `json:"processes"` // living processes that have it open
	Slots     []LimitUsage `json:"slots"`     // one per limit
	Mutexes   []LimitUsage `json:"mutexes"`   // one per mutex, which is a limit of one slot

	Buckets []stint.BucketUsage `json:"buckets,omitempty"` // one per rate
	Err     string              `json:"err,omitempty"`     // why the other fields are empty; set only by [List]
}

// LimitUsage is the state of a limit.
type LimitUsage struct {
	Max     int            `json:"max"`
	Running int            `json:"running"` // slots that living processes hold
	Waiting int            `json:"waiting"`
	Holders []ProcessUsage `json:"holders"`
}

// ProcessUsage is the number of slots that a process holds of a limit, and of its
// waiters.
type ProcessUsage struct {
	Process
	Slots   int `json:"slots"`
	Waiting int `json:"waiting"`
	// Dead says that the process has died and its slots are not recovered yet: the next
	// process that asks for a slot recovers them. Name may be empty.
	Dead bool `json:"dead,omitempty"`
}

// Inspect returns the state of a region and of the processes that share it. It does not
// join, so it changes nothing, and works also while [ProcessesMax] processes have the
// region open. While they take and release slots, the numbers are not of the same
// instant.
//
// It fails with [ErrMismatch] if the file is not a region, is of an unknown version of
// this package, or belongs to another time namespace; with [ErrNotOurs]; or with another
// error if the region is incomplete, or was made before the machine was started.
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
		Processes: []Process{}, Slots: []LimitUsage{}, Mutexes: []LimitUsage{}, // lists in JSON, also if they are empty
	}
	if info.Path, err = pathOf(name, arena.Private); err != nil {
		return info, err
	}
	a, err := arena.Look(info.Path)
	if err != nil {
		return info, err
	}
	defer a.File.Close() //nolint:errcheck // it was only read
	if info.Geometry, err = geometryOf(a.Geometry); err != nil {
		return info, err
	}
	shape := info.Geometry.shape()
	if n := len(a.Words); n != shape.Words() {
		return info, fmt.Errorf("%w: it has %d words for a geometry of %d", ErrMismatch, n, shape.Words())
	}
	p := poolOf(a, shape)
	seen := &processes{proc: a.Proc, seen: make(map[pool.Party]Process)}
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
		info.Buckets = append(info.Buckets, bucketUsage(rate.meter(), p.BucketState(i)))
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

// List inspects all regions in this user's directory in /dev/shm, sorted by name. If a
// region cannot be inspected, its Err holds the reason.
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
		return nil, nil // no region has been made
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

// Remove deletes a region that no living process has open, with what dead processes left
// in it. It fails with [ErrInUse], which names the processes that have it open, with
// [ErrStuck], [ErrNotOurs], or [ErrMismatch] if the file is something else. It also
// removes regions that [Inspect] refuses: those from before the machine was started, of
// other versions, and incomplete ones, which include empty files. Like [Open] it waits
// while another process opens or removes the region.
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

// named adds the processes that use a region to an [ErrInUse], if they are known.
func named(err error, path string) error {
	if !errors.Is(err, ErrInUse) {
		return err
	}
	info, unknown := inspect(path)
	if unknown != nil || len(info.Processes) == 0 {
		return fmt.Errorf("%w: `fuser -v %s` lists the processes that have it open", err, path)
	}
	var users []string
	for _, p := range info.Processes {
		users = append(users, describe(p))
	}
	return fmt.Errorf("%w by %s", err, strings.Join(users, ", "))
}
