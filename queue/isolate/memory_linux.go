package isolate

import (
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const canLimitMemory = true

// lookEvery is how often the memory of groups is looked at. A look reads the
// numbers of all processes of the system, in about a millisecond.
const lookEvery = 50 * time.Millisecond

// memory looks after the memory of all groups that have a limit, in one loop for
// all of them that runs while there is any. The zero value is ready for use.
type memory struct {
	mu     sync.Mutex
	groups map[int]*group // by their numbers; guarded by mu
	stop   chan struct{}  // ends the loop; guarded by mu
}

var memories memory //nolint:gochecknoglobals // one loop for all groups of a program

// limit looks after a group until forget is called. 0 is no limit.
func (m *memory) limit(g *group, most int64) (forget func()) {
	if most == 0 {
		return func() {}
	}
	limitData(g.p.Pid(), most)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.groups) == 0 {
		m.groups, m.stop = make(map[int]*group), make(chan struct{})
		go m.loop(m.stop)
	}
	pid := g.p.Pid()
	m.groups[pid] = g
	return func() { m.forget(pid, g) }
}

func (m *memory) forget(pid int, g *group) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.groups[pid] == g { // the number may be another group's already
		delete(m.groups, pid)
	}
	if len(m.groups) == 0 && m.stop != nil {
		close(m.stop)
		m.stop = nil
	}
}

// loop looks until nobody needs it.
func (m *memory) loop(stop <-chan struct{}) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			m.look()
		case <-stop:
			return
		}
	}
}

// look kills the groups that have more than they may.
func (m *memory) look() {
	used := m.usedByGroup()
	m.mu.Lock()
	defer m.mu.Unlock()
	for pid, g := range m.groups {
		if n := used[pid]; n > g.cfg.Memory {
			g.claim(LimitMemory, n) // or it is ending for another reason, too slowly
			g.kill()
		}
	}
}

// usedByGroup is how many bytes all processes of each group of the system have
// in memory.
func (m *memory) usedByGroup() map[int]int64 {
	used := make(map[int]int64)
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return used // the other limit holds
	}
	page := int64(os.Getpagesize())
	for _, entry := range entries {
		if c := entry.Name()[0]; c < '1' || c > '9' {
			continue
		}
		// One that has ended while we look has no such file.
		if text, err := os.ReadFile("/proc/" + entry.Name() + "/stat"); err == nil {
			group, pages := parseStat(string(text))
			used[group] += pages * page
		}
	}
	return used
}

// parseStat finds the process group, and the pages in memory, in the text of
// /proc/PID/stat; zeros in any other.
func parseStat(text string) (group int, pages int64) {
	// The name, in parentheses, is the process's to choose. Fields are counted from
	// 1 in proc(5), with the name as the second.
	const atGroup, atPages = 5 - 3, 24 - 3
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) <= atPages {
		return 0, 0
	}
	group, err := strconv.Atoi(fields[atGroup])
	if err != nil {
		return 0, 0
	}
	if pages, err = strconv.ParseInt(fields[atPages], 10, 64); err != nil {
		return 0, 0
	}
	return group, pages
}

// limitData has the system refuse a process, and those that it starts, what
// would be far above the limit before anybody looks. It is twice the limit,
// because an end for the limit says more than one for want of memory, and because
// programs ask for more than they use. The system refuses to do so for programs
// that run as another user; those are looked after all the same.
func limitData(pid int, most int64) {
	const room = 32 << 20
	if most > (math.MaxInt64-room)/2 {
		return
	}
	n := 2*uint64(most) + room
	var had unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_DATA, nil, &had); err == nil {
		n = min(n, had.Max)
	}
	_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: n, Max: n}, nil)
}
