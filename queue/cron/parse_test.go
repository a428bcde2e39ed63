package cron_test

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint/queue/cron"
)

// parse parses a valid expression; an error ends the test.
func parse(t *testing.T, expr string) cron.Schedule {
	t.Helper()
	s, err := cron.Parse(expr)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestC8_CronFields checks that each form of a field has the same ticks as the list of
// its values.
func TestC8_CronFields(t *testing.T) {
	tests := []struct{ expr, same string }{
		{"*/15 0 * * 1-7", "0,15,30,45 0 * * *"},
		{"10-30/10 0 * * *", "10,20,30 0 * * *"},
		{"10-29/10 0 * * *", "10,20 0 * * *"},
		{"20/15 0 * * *", "20,35,50 0 * * *"},
		{"59/1 0 * * *", "59 0 * * *"},
		{"7-7/2 0 * * *", "7 0 * * *"},
		{"1,1,1 0 * * *", "1 0 * * *"},
		{"0,30-32,58-59 0 * * *", "0,30,31,32,58,59 0 * * *"},
		{"05 007 01 1 *", "5 7 1 1 *"},
		{"0 9-17/4 * * *", "0 9,13,17 * * *"},
		{"0 20/2 * * *", "0 20,22 * * *"},
		{"0 0 1-31/7 * *", "0 0 1,8,15,22,29 * *"},
		{"0 0 */31 * *", "0 0 1 * *"},
		{"0 0 1 jan-mar,DEC *", "0 0 1 1,2,3,12 *"},
		{"0 0 1 */12 *", "0 0 1 1 *"},
		{"0 0 1 7-dec/2 *", "0 0 1 7,9,11 *"},
		{"0 0 * * mon-fri", "0 0 * * 1,2,3,4,5"},
		{"0 0 * * Sun", "0 0 * * 0"},
		{"0 0 * * 7", "0 0 * * 0"},
		{"0 0 * * 5-7", "0 0 * * 0,5,6"},
		{"0 0 * * fri-sun", "0 0 * * 0,5,6"},
		{"0 0 * * 5-0", "0 0 * * 0,5,6"},
		{"0 0 * * sun-tue", "0 0 * * 0,1,2"},
		{"0 0 * * sun-sun", "0 0 * * 0"},
		{"0 0 * * 0-7", "0 0 * * *"},
		{"0 0 * * 1/2", "0 0 * * 1,3,5"},
		{"0 0 * * 7/2", "0 0 * * 0"},
		{"0 0 * * */7", "0 0 * * 0"},
		{"0 0 * * */2", "0 0 * * 0,2,4,6"},
		{"\t0\n0 *  * * \r", "0 0 * * *"},
		{"@hourly", "0 * * * *"},
		{"@daily", "0 0 * * *"},
		{"@Midnight", "0 0 * * *"},
		{" @weekly ", "0 0 * * sun"},
		{"@monthly", "0 0 1 * *"},
		{"@YEARLY", "0 0 1 1 *"},
		{"@annually", "0 0 1 1 *"},
		{"@every 90m", "@every  1h30m0s"},
		{"@EVERY 60S", "@every 1m"},
	}
	for _, test := range tests {
		got, want := parse(t, test.expr), parse(t, test.same)
		for at, n := day(2026, 1, 1), 0; n < 500; n++ {
			tick, ok := want.Next(at)
			if g, gok := got.Next(at); g != tick || !gok || !ok {
				t.Errorf("%q after %v: %v, %t, but %q: %v, %t", test.expr, at, g, gok, test.same, tick, ok)
				break
			}
			at = tick
		}
	}
}

func TestC8_CronErrors(t *testing.T) {
	tests := []struct{ expr, say string }{
		{"", "it has 0 fields, not the 5 of minute, hour, day of month, month, day of week"},
		{"* * * *", "it has 4 fields"},
		{"0 0 0 * * *", "it has 6 fields"},
		{"60 * * * *", `minute: "60" is not a number from 0 to 59`},
		{"-5 * * * *", `minute: "" is not a number from 0 to 59`},
		{"+5 * * * *", `minute: "+5" is not a number`},
		{"1.5 * * * *", `minute: "1.5" is not a number`},
		{"1,,2 * * * *", `minute: "" is not a number`},
		{"1, * * * *", `minute: "" is not a number`},
		{"** * * * *", `minute: "**" is not a number`},
		{"*-5 * * * *", `minute: "*" is not a number`},
		{"1-2-3 * * * *", `minute: "2-3" is not a number`},
		{"mon * * * *", `minute: "mon" is not a number from 0 to 59`},
		{"99999999999999999999 * * * *", `minute: "99999999999999999999" is not`},
		{"٣ * * * *", `minute: "٣" is not a number`},
		{"*/0 * * * *", `minute: the step "0" of "*/0" is not a number from 1 to 59`},
		{"*/60 * * * *", `minute: the step "60" of "*/60" is not a number from 1 to 59`},
		{"*/ * * * *", `minute: the step "" of "*/"`},
		{"*/-1 * * * *", `minute: the step "-1" of "*/-1"`},
		{"*/+1 * * * *", `minute: the step "+1" of "*/+1"`},
		{"*/5/5 * * * *", `minute: the step "5/5" of "*/5/5"`},
		{"0 24 * * *", `hour: "24" is not a number from 0 to 23`},
		{"0 22-5 * * *", `hour: the range "22-5" runs backwards: write 22-23,0-5`},
		{"0 5-0 * * *", `hour: the range "5-0" runs backwards: write 5-23,0-0`},
		{"0 0 0 * *", `day of month: "0" is not a number from 1 to 31`},
		{"0 0 32 * *", `day of month: "32" is not a number from 1 to 31`},
		{"0 0 L * *", `day of month: "l" is not a number from 1 to 31`},
		{"0 0 ? * *", `day of month: "?" is not`},
		{"0 0 1 0 *", `month: "0" is not a number from 1 to 12 or a name from jan to dec`},
		{"0 0 1 13 *", `month: "13" is not a number from 1 to 12`},
		{"0 0 1 january *", `month: "january" is not a number from 1 to 12 or a name from jan to dec`},
		{"0 0 1 dec-jan *", `month: the range "dec-jan" runs backwards: write dec-12,1-jan`},
		{"0 0 * * 8", `day of week: "8" is not a number from 0 to 7 or a name from sun to sat`},
		{"0 0 * * ſun", `day of week: "ſun" is not`},
		{"0 0 * * 5-2", `day of week: the range "5-2" runs backwards: write 5-6,0-2`},
		{"0 0 * * sat-mon", `write sat-6,0-mon`},
		{"0 0 * * mon#1", `day of week: "mon#1" is not`},
		{"0 0 30 2 *", `day of month: "30" never comes in month "2", which has at most 29 days`},
		{"0 0 30,31 feb *", `"30,31" never comes in month "feb", which has at most 29 days`},
		{"0 0 31 2,4,6,9,11 *", `"31" never comes in month "2,4,6,9,11", which has at most 30 days`},
		{"0 0 31 2 */2", `never comes`},
		{"@reboot", `"@reboot" is none of @annually, @daily, @hourly, @midnight, @monthly, @weekly, @yearly and @every`},
		{"@", `"@" is none of`},
		{"@daily 5", `"@daily 5" is none of`},
		{"@every", `"@every" is none of`},
		{"@every 5", `@every: "5" is not a duration of whole seconds, such as 90s, 5m or 1h30m`},
		{"@every 0s", `"0s" is not a duration`},
		{"@every -5m", `"-5m" is not a duration`},
		{"@every 500ms", `"500ms" is not a duration of whole seconds`},
		{"@every 1.5s", `"1.5s" is not a duration of whole seconds`},
		{"@every 5m 3s", `"5m 3s" is not a duration`},
		{"@every 1000000000h", `is not a duration`},
		{"CRON_TZ=Europe/Berlin 0 0 * * *", "the zone is not part of an expression"},
		{"TZ=UTC @daily", "the zone is not part of an expression"},
		{strings.Repeat("1", 1001), "it has 1001 bytes: at most 1000 are allowed"},
	}
	for _, test := range tests {
		s, err := cron.Parse(test.expr)
		if !errors.Is(err, cron.ErrExpr) || !strings.Contains(err.Error(), test.say) || s != (cron.Schedule{}) {
			t.Errorf("Parse(%q) = %v, %v, want an error that says %s", test.expr, s, err, test.say)
			continue
		}
		if shown := strconv.Quote(test.expr); len(test.expr) <= 100 && !strings.Contains(err.Error(), shown) {
			t.Errorf("Parse(%q): %v does not show the expression", test.expr, err)
		}
		if len(err.Error()) > 400 {
			t.Errorf("Parse(%.10q…): the error has %d bytes", test.expr, len(err.Error()))
		}
	}
}

// TestC8_CronBackwardsAdvice checks that the range that the error about a backwards range
// recommends is valid.
func TestC8_CronBackwardsAdvice(t *testing.T) {
	for _, expr := range []string{
		"50-10 0 * * *", "0 22-5 * * *", "0 0 25-5 * *", "0 0 1 nov-feb *", "0 0 * * sat-mon", "0 0 * * 7-2",
	} {
		_, err := cron.Parse(expr)
		if err == nil {
			t.Fatalf("Parse(%q) is no error", expr)
		}
		_, advice, _ := strings.Cut(err.Error(), "write ")
		fields := strings.Fields(expr)
		for i := range fields {
			if strings.Contains(fields[i], "-") {
				fields[i] = advice
			}
		}
		if _, err := cron.Parse(strings.Join(fields, " ")); err != nil {
			t.Errorf("Parse(%q) advises %s: %v", expr, advice, err)
		}
	}
}

func TestC8_CronText(t *testing.T) {
	for expr, want := range map[string]string{
		"*/5 * * * *":            "*/5 * * * *",
		"  0\t12 1 JAN   Mon ":   "0 12 1 jan mon",
		"05 4 * * *":             "05 4 * * *",
		"@Daily":                 "@daily",
		"@every  1h30m":          "@every 1h30m",
		"0,15,30,45 0 * * *":     "0,15,30,45 0 * * *",
		"\u00a00 0\u00a0* * *\n": "0 0 * * *",
	} {
		s := parse(t, expr)
		if s.String() != want {
			t.Errorf("String of %q = %q, want %q", expr, s, want)
		}
		stored, err := json.Marshal(s)
		if err != nil || string(stored) != strconv.Quote(want) {
			t.Errorf("JSON of %q: %s, %v", expr, stored, err)
		}
		var read cron.Schedule
		if err := json.Unmarshal(stored, &read); err != nil || read != s {
			t.Errorf("read from JSON: %v, %v, want %v", read, err, s)
		}
	}
	var zero cron.Schedule
	if text, err := zero.MarshalText(); !errors.Is(err, cron.ErrExpr) {
		t.Errorf("MarshalText of the zero Schedule: %q, %v", text, err)
	}
	s := parse(t, "@daily")
	if err := s.UnmarshalText([]byte("@never")); !errors.Is(err, cron.ErrExpr) || s.String() != "@daily" {
		t.Errorf("UnmarshalText of an unknown word: %v, and the schedule is %q", err, s)
	}
}

// FuzzParse checks that Parse never panics, that its errors wrap ErrExpr, that the text
// of a schedule parses as an equal one, and that schedules tick in order and on whole
// seconds.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"* * * * *", "*/15 9-17 1,15 jan-mar mon-fri", "0 0 29 2 */7", "0 0 30 2 *", "5/7 */2 * * 5-7", "@every 1h30m",
		"@daily", "@every 2562047h47m16s", "CRON_TZ=UTC 0 0 * * *", "", "@", "1-2-3 * * * *", "*/9223372036854775808 * * * *",
		"\x00 * * * *", "\xff", "0 0 * * wee\u212aly", "@wee\u212aly", "59 23 31 12 7", "*,1 1,* */2 * 1",
	} {
		f.Add(seed, int64(1_772_953_200), int64(0))
	}
	f.Add("30 2 * * *", int64(-62135596800), int64(1))
	f.Add("@every 1s", int64(253402300799), int64(-1))
	f.Add("* * * * *", int64(-1<<63), int64(1<<40))
	f.Fuzz(func(t *testing.T, expr string, unix, nanos int64) {
		s, err := cron.Parse(expr)
		if err != nil {
			if !errors.Is(err, cron.ErrExpr) || s != (cron.Schedule{}) {
				t.Fatalf("Parse(%q) = %v, %v", expr, s, err)
			}
			return
		}
		if again, err := cron.Parse(s.String()); err != nil || again != s {
			t.Fatalf("Parse(%q) = %v, and of its text: %v, %v", expr, s, again, err)
		}
		// Next must return for any time. Its results are checked for the years that RFC
		// 3339 can represent.
		at := time.Unix(unix, nanos).UTC()
		tick, ok := s.Next(at)
		if at.Year() < 0 || at.Year() > 9900 {
			return
		}
		if next, more := s.Next(tick); !ok || !more || !tick.After(at) || !next.After(tick) || tick.Nanosecond() != 0 {
			t.Fatalf("%q after %v: %v, %t, then %v, %t", expr, at, tick, ok, next, more)
		}
	})
}
