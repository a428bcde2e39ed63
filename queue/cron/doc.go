// Package cron reads cron expressions and computes when they tick.
//
//	schedule, err := cron.Parse("30 4 * * mon-fri")
//	tick, ok := schedule.Next(time.Now().In(berlin))
//
// All functions are pure: none reads a clock, blocks or starts a goroutine, and the same
// arguments give the same result on every machine with the same time zone data. Several
// nodes can therefore compute the ticks of one schedule; the first node that stores
// (schedule, tick.Unix()) under a unique key owns the tick.
//
// # Expressions
//
// An expression has the five fields of crontab(5), with space between them:
//
//	minute        0-59
//	hour          0-23
//	day of month  1-31
//	month         1-12 or jan-dec
//	day of week   0-7 or sun-sat; 0 and 7 are Sunday
//
// A field is a list of items with commas between them. An item is a value (5), a range
// (9-17, mon-fri, fri-sun), or * for all values. A step n after a range or * selects
// every nth value of it (*/15, 10-30/5); after a single value it counts from there to the
// end of the field (20/15 in the minutes is 20, 35 and 50). Letter case does not matter.
// A range cannot wrap around the end of its field: write 22-23,0-5 instead of 22-5.
//
// Day of month and day of week are special, as in crontab(5): if neither begins with *, a
// day matches that is in at least one of them (0 0 13 * fri is every 13th and every
// Friday). If one of them begins with *, a day must be in both, so that 0 0 */2 * mon is
// each Monday with an odd date.
//
// Words stand for the usual expressions:
//
//	@hourly               0 * * * *
//	@daily, @midnight     0 0 * * *
//	@weekly               0 0 * * 0
//	@monthly              0 0 1 * *
//	@yearly, @annually    0 0 1 1 *
//	@every 1h30m          the multiples of that duration since the Unix epoch
//
// The duration of @every is in the form of [time.ParseDuration], and whole seconds. Its
// ticks are counted from 1970-01-01T00:00:00Z rather than from the start of a process, so
// that all nodes agree on them. Zones have no effect: "@every 24h" ticks at midnight UTC
// everywhere.
//
// # Zones
//
// The zone is not part of an expression; it is the zone of the argument of
// [Schedule.Next]: schedule.Next(now.In(berlin)). Parse rejects a prefix such as
// CRON_TZ=Europe/Berlin, because a zone inside the text cannot be checked or shown
// separately. Nodes that must agree on ticks must not use [time.Local], which may differ
// between them.
//
// # When the clock changes
//
// At the start and the end of daylight saving time a wall clock skips some times and
// shows others twice. This package applies the rule of Vixie's cron(8) without its
// exceptions. The rule distinguishes two kinds of schedules:
//
//   - A schedule at fixed times, such as 30 2 * * *: each time ticks once, at the
//     first moment when the clock shows it or a later time. A skipped time
//     therefore ticks right after the change, and a repeated time ticks at its
//     first occurrence. Several times that are skipped together make one tick,
//     because a tick is a moment.
//   - A schedule whose minute or hour begins with *, such as 0 * * * * or
//     */10 2 * * *: it ticks whenever the clock shows a matching time. Skipped
//     times do not tick, and repeated times tick again, so an hourly job runs in
//     both of two hours with the same number.
//
// Vixie cron treats a change of three hours or more as a correction of the clock, because
// it cannot distinguish a correction from a change of the zone. This package reads only
// the changes of the zone, so it applies the rule to changes of any length: where a zone
// skipped a whole day (Pacific/Apia, 2011-12-30), the fixed times of that day tick
// together at its end.
package cron
