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

// checkEvery is the interval at which the memory of groups is measured. A measurement
// reads /proc/PID/stat of all processes of the system, which takes about a millisecond.
const checkEvery = 50 * time.Millisecond

// memoryMonitor kills groups that exceed their memory limit. One loop measures all
// groups; it runs while any group has a limit. The zero value is ready for use.
type memoryMonitor struct {
	mu     sync.Mutex
	groups map[int]*group // by process group ID; guarded by mu
	stop   chan struct{}  // closed to end the loop; guarded by mu
}

var monitor memoryMonitor //nolint:gochecknoglobals // one loop for all groups of a program

// limit enforces a limit of most bytes on g until forget is called. 0 means no limit.
func (m *memoryMonitor) limit(g *group, most int64) (forget func()) {
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

func (m *memoryMonitor) forget(pid int, g *group) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.groups[pid] == g { // the ID may already belong to another group
		delete(m.groups, pid)
	}
	if len(m.groups) == 0 && m.stop != nil {
		close(m.stop)
		m.stop = nil
	}
}

// loop checks all groups at every tick until stop is closed.
func (m *memoryMonitor) loop(stop <-chan struct{}) {
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			m.check()
		case <-stop:
			return
		}
	}
}

// check kills the groups that exceed their limit.
func (m *memoryMonitor) check() {
	used := m.usedByGroup()
	m.mu.Lock()
	defer m.mu.Unlock()
	for pid, g := range m.groups {
		if n := used[pid]; n > g.cfg.Memory {
			g.claim(LimitMemory, n) // no effect if the group is already being ended for another reason
			g.kill()
		}
	}
}

// usedByGroup returns the resident bytes of every process group of the system, by its ID.
func (m *memoryMonitor) usedByGroup() map[int]int64 {
	used := make(map[int]int64)
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return used // RLIMIT_DATA still applies
	}
	page := int64(os.Getpagesize())
	for _, entry := range entries {
		if c := entry.Name()[0]; c < '1' || c > '9' {
			continue
		}
		// A process that has ended meanwhile has no such file.
		if text, err := os.ReadFile("/proc/" + entry.Name() + "/stat"); err == nil {
			group, pages := parseStat(string(text))
			used[group] += pages * page
		}
	}
	return used
}

// parseStat returns the process group ID and the number of resident pages from the text
// of /proc/PID/stat, or zeros if the text is invalid.
func parseStat(text string) (group int, pages int64) {
	// The second field, the name in parentheses, may contain any character, so the fields
	// are counted from the last parenthesis. proc(5) numbers them from 1.
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

// limitData sets RLIMIT_DATA of a process and its future children, so that allocations
// far above the limit fail between two measurements. RLIMIT_DATA is twice the limit,
// because the error of the memory limit says more than a failed allocation, and because
// programs allocate more than they use. The system refuses prlimit for programs that run
// as another user; the monitor measures those all the same.
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
