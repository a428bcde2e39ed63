package machine

import (
	"time"

	"github.com/stintgo/stint/queue/internal/record"
)

// released has the row of a task that ran tell that it does no more. Its last
// token stays: no older one is ever valid again.
func released(row *record.Row) {
	row.Lease.Until, row.Remote = time.Time{}, 0
	row.Order, row.OrderBy, row.OrderReason = 0, "", ""
}
