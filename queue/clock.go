package queue

import (
	"time"

	"github.com/stintgo/stint/internal/clock"
)

// wall returns the time of the system's clock, which schedules follow. A cron expression
// means that time, also after the clock was set or the machine was suspended. The cursor
// of a schedule prevents a tick from being submitted twice.
func wall() time.Time { return clock.Now().Round(0) }
