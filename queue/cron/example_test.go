package cron_test

import (
	"fmt"
	"time"

	"github.com/stintgo/stint/queue/cron"
)

func ExampleSchedule_Next() {
	schedule, err := cron.Parse("30 2 * * mon-fri")
	if err != nil {
		fmt.Println(err)
		return
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		fmt.Println(err)
		return
	}
	// The zone is that of the argument of Next.
	now := time.Date(2026, 11, 20, 18, 0, 0, 0, time.UTC).In(berlin)
	for range 2 {
		tick, _ := schedule.Next(now)
		fmt.Println(tick.Format(time.RFC1123))
		now = tick
	}
	// Output:
	// Mon, 23 Nov 2026 02:30:00 CET
	// Tue, 24 Nov 2026 02:30:00 CET
}

// A fixed time that the clock jumps over ticks right after the jump, once.
func ExampleSchedule_Next_clockChange() {
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		fmt.Println(err)
		return
	}
	schedule, err := cron.Parse("15,45 2 * * *")
	if err != nil {
		fmt.Println(err)
		return
	}
	tick := time.Date(2026, 3, 7, 12, 0, 0, 0, newYork)
	for range 3 {
		tick, _ = schedule.Next(tick)
		fmt.Println(tick.Format(time.RFC822))
	}
	// Output:
	// 08 Mar 26 03:00 EDT
	// 09 Mar 26 02:15 EDT
	// 09 Mar 26 02:45 EDT
}

// Between finds the ticks that were missed while the program did not run. The caller
// may run each of them, one for all of them, or none and continue with Next.
func ExampleSchedule_Between() {
	schedule, err := cron.Parse("@every 20m")
	if err != nil {
		fmt.Println(err)
		return
	}
	last := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	now := time.Date(2026, 11, 20, 10, 5, 0, 0, time.UTC)
	for _, tick := range schedule.Between(last, now, 100) {
		fmt.Println(tick.Format(time.TimeOnly))
	}
	// Output:
	// 09:20:00
	// 09:40:00
	// 10:00:00
}

func ExampleParse_errors() {
	for _, expr := range []string{"0 25 * * *", "0 22-5 * * *", "0 0 30 2 *"} {
		_, err := cron.Parse(expr)
		fmt.Println(err)
	}
	// Output:
	// invalid cron expression "0 25 * * *": hour: "25" is not a number from 0 to 23
	// invalid cron expression "0 22-5 * * *": hour: the range "22-5" runs backwards: write 22-23,0-5
	// invalid cron expression "0 0 30 2 *": day of month: "30" never comes in month "2", which has at most 29 days
}
