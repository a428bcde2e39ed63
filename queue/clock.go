package queue

import (
	"time"

	"github.com/stintgo/stint/internal/clock"
)

// wall returns the time that schedules go by. Cron expressions mean the time of the system,
// also after it has been set or the machine was suspended; the cursor of a schedule
// prevents a tick from coming twice, whatever a clock does.
func wall() time.Time { return clock.Now().Round(0) }
