// Package cron reads cron expressions and computes when they tick.
//
//	schedule, err := cron.Parse("30 4 * * mon-fri")
//	tick, ok := schedule.Next(time.Now().In(berlin))
//
// Everything here is pure: nothing reads a clock, waits or starts a goroutine,
// and the same arguments give the same answer on every machine with the same
// time zone data. So many nodes may compute the ticks of one schedule, and
// whoever is first to store (schedule, tick.Unix()) under a unique key has won it.
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
// A field is a list of items with commas between them. An item is a value (5), a
// range (9-17, mon-fri, fri-sun), or * for all values; a step after a range or *
// takes every so many of its values (*/15, 10-30/5), and after a single value it
// counts from there to the end of the field (20/15 in the minutes is 20, 35 and
// 50). Letter case does not matter. A range does not run over the end of its
// field: it is 22-23,0-5 and not 22-5.
//
// Day of month and day of week are special, as in crontab(5): if neither begins
// with *, a day matches that is in one or the other (0 0 13 * fri is every 13th
// and every Friday). If one of them begins with *, a day has to be in both, so
// that 0 0 */2 * mon is each Monday with an odd date.
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
// The duration of @every is one that [time.ParseDuration] reads, of whole
// seconds. That its ticks are counted from 1970-01-01T00:00:00Z, and not from
// the start of some process, is what lets all nodes agree on them; zones do not
// touch them, so "@every 24h" ticks at midnight UTC everywhere.
//
// # Zones
//
// The zone is no part of an expression. It is that of the time which
// [Schedule.Next] is given: schedule.Next(now.In(berlin)). A prefix such as
// CRON_TZ=Europe/Berlin is refused, because a zone that is hidden in a text can
// be neither checked nor shown apart from it. Nodes that have to agree must not
// use [time.Local], which may differ between them.
//
// # When the clock changes
//
// At the start and the end of daylight saving time a wall clock skips times and
// shows others twice. Vixie's cron(8) describes what people expect then, and
// here it is a rule without exceptions. It tells two kinds of schedules apart:
//
//   - At fixed times, as 30 2 * * *: each time ticks once, at the first moment
//     when the clock shows it or something later. A time that is skipped
//     therefore ticks right after the change, and one that comes twice ticks the
//     first time. Several times that are skipped together make one tick, because
//     a tick is a moment.
//   - If the minute or the hour begins with *, as 0 * * * * or */10 2 * * *: it
//     ticks whenever the clock shows a time that matches, so what is skipped is
//     left out and what is repeated ticks again. An hourly job runs in both of
//     two hours that look the same.
//
// Vixie cron treats a change of three hours or more as a correction of the
// clock, which it cannot tell from a change of the zone. We know the zone's own
// changes and do not see any other, so the rule holds for all of them: where a
// zone has left a whole day out (Pacific/Apia, 2011-12-30), its fixed times tick
// together when that day is over.
package cron
