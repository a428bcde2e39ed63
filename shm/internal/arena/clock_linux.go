package arena

import (
	"time"

	"golang.org/x/sys/unix"
)

// Now is the time in nanoseconds on a clock that all processes of the machine
// read alike, to about a microsecond, and that never goes back in one of them. It
// is CLOCK_MONOTONIC as Go reads it: without a system call, which would be ten
// times as much.
func Now() int64 { return clock.ahead + int64(time.Since(clock.began)) } //nolint:forbidigo // this is the clock

//nolint:gochecknoglobals // a process has one clock
var clock = calibrate()

// calibration is how CLOCK_MONOTONIC was at an instant of Go's clock, which is the
// same but counts from the start of the process.
type calibration struct {
	began time.Time
	ahead int64
}

// calibrate reads Go's clock between two readings of the system's. It is wrong by
// half of what lies between those at most, so the closest pair counts: two system
// calls, unless the process is held up every time.
func calibrate() (best calibration) {
	const readings = 16
	closest := int64(-1)
	for range readings {
		before := system()
		began := time.Now() //nolint:forbidigo // this is the clock
		between := system() - before
		if closest < 0 || between < closest {
			closest = between
			best = calibration{began, before + between/2}
		}
	}
	return best
}

func system() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // it has always been there
	return now.Nano()
}
