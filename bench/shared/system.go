package shared

import "github.com/stintgo/stint"

// The names of the subjects, as tables and goals write them.
const (
	floor       = "compare-and-swap + store (floor)"
	wakeFloor   = "futex (floor)"
	handFloor   = "futex, then a goroutine (floor)"
	slotsAlone  = "stint shm slots, alone"
	scheduler   = "stint shm slots, scheduler"
	fileLocks   = "flock, a file a slot (no order)"
	tokenDaemon = "token daemon, Unix socket"
	redisTokens = "Redis BLPOP + LPUSH"
)

// system is a way in which processes share slots.
type system struct {
	// serve makes what the processes meet at, and returns its address.
	serve func(*turn) (address string, err error)
	// open opens the slots for a process, in which callers goroutines use them.
	open func(address string, slots, callers int) (limit, error)
}

// limit is the slots, as one process has them.
type limit interface {
	// caller is for one goroutine.
	caller() (caller, error)
}

// caller has one slot, or none.
type caller interface {
	// acquire waits for a slot. Not all systems know tiers.
	acquire(stint.Priority) error
	release() error
}

// burster does many pairs, for systems where calling a method costs as much as
// the pair does.
type burster interface{ burst(n int) error }

var systemTable = map[string]system{
	floor:       {serve: nowhere, open: openFloor},
	wakeFloor:   {serve: inMemory, open: openFutex},
	handFloor:   {serve: inMemory, open: openFutexGoroutine},
	slotsAlone:  {serve: inMemory, open: openSlots},
	scheduler:   {serve: inMemory, open: openScheduler},
	fileLocks:   {serve: inMemory, open: openFileLocks},
	tokenDaemon: {serve: startDaemon, open: openDaemon},
	redisTokens: {serve: startRedis, open: openRedis},
}

func nowhere(*turn) (string, error) { return "", nil }

func inMemory(t *turn) (string, error) { return t.memory, nil }

// burst has a caller acquire and release n times.
func burst(c caller, n int) error {
	if b, ok := c.(burster); ok {
		return b.burst(n)
	}
	for range n {
		if err := c.acquire(stint.Normal); err != nil {
			return err
		}
		if err := c.release(); err != nil {
			return err
		}
	}
	return nil
}
