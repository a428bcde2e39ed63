package stint_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/stintgo/stint"
)

func TestParseRate(t *testing.T) {
	tests := []struct {
		text string
		want float64
	}{
		{"100/s", 100},
		{"100", 100},
		{" 100 / s ", 100},
		{"5/m", 5.0 / 60},
		{"5/min", 5.0 / 60},
		{"1000/hour", 1000.0 / 3600},
		{"1/d", 1.0 / 86400},
		{"1/Day", 1.0 / 86400},
		{"20/1m30s", 20.0 / 90},
		{"1/500ms", 2},
		{"0.5/s", 0.5},
		{".5/s", 0.5},
		{"10MB/s", 10e6},
		{"10 MB/s", 10e6},
		{"10M/s", 10e6},
		{"10m/s", 10e6},
		{"1.5MiB", 1.5 * (1 << 20)},
		{"2k", 2000},
		{"2KB/s", 2000},
		{"2KiB/s", 2048},
		{"1GiB/s", 1 << 30},
		{"7B/s", 7},
		{"16Gi/s", 1 << 34},
		{"0.000001/s", 1e-6},
		{"1T/h", 1e12 / 3600},
	}
	for _, test := range tests {
		got, err := stint.ParseRate(test.text)
		if err != nil || got != test.want {
			t.Errorf("ParseRate(%q) = %v, %v, want %v", test.text, got, err, test.want)
		}
	}
}

func TestParseRate_SaysWhatToDo(t *testing.T) {
	tests := []struct{ text, say string }{
		{"", "begin with a number"},
		{"/s", "begin with a number"},
		{"fast", "begin with a number"},
		{"-5/s", "begin with a number"},
		{"NaN", "begin with a number"},
		{"1.2.3/s", "begin with a number"},
		{"10Mb/s", "write MB for bytes"},
		{"10b/s", "write B for bytes"},
		{"10QB/s", "use k, M, G"},
		{"10BB/s", "use k, M, G"},
		{"5/", "use s, m, h, d"},
		{"5/week", "use s, m, h, d"},
		{"5/-1s", "use s, m, h, d"},
		{"5/0s", "use s, m, h, d"},
		{"5/s/s", "use s, m, h, d"},
		{"0/s", "outside 1e-06 to 17179869184"},
		{"1/100d", "use s, m, h, d"},
		{"1T/s", "outside 1e-06 to 17179869184"},
		{"0.01/d", "outside"},
		{strings.Repeat("9", 400), "outside 1e-06 to 17179869184"},
		{strings.Repeat("9", 400) + "k/h", "outside 1e-06 to 17179869184"},
	}
	for _, test := range tests {
		got, err := stint.ParseRate(test.text)
		if !errors.Is(err, stint.ErrRate) || !strings.Contains(err.Error(), test.say) || got != 0 {
			t.Errorf("ParseRate(%q) = %v, %q, want an ErrRate that says %q", test.text, got, err, test.say)
		}
	}
}

// FuzzParseRate checks that whatever is accepted is a rate that a limiter
// takes, and that it means the same when it is written plainly.
func FuzzParseRate(f *testing.F) {
	for _, seed := range []string{
		"100/s", "5/m", "10MB/s", "1.5MiB", "20/1m30s", "2k", "1/d", "", "/", "5/", "1e9", "0x10", "9b", "Inf",
		"1/1e9s", "..", "1\x00/s", "1/９s", "16Gi/s",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rate, err := stint.ParseRate(text)
		if err != nil {
			if rate != 0 || !errors.Is(err, stint.ErrRate) {
				t.Fatalf("ParseRate(%q) = %v, %v", text, rate, err)
			}
			return
		}
		if err := (stint.LimiterConfig{}).Validate(rate); err != nil {
			t.Fatalf("ParseRate(%q) = %v: %v", text, rate, err)
		}
		plain := strconv.FormatFloat(rate, 'f', -1, 64) + "/s"
		again, err := stint.ParseRate(plain)
		if err != nil || again != rate {
			t.Fatalf("ParseRate(%q) = %v, %v, but %q is %v", plain, again, err, text, rate)
		}
	})
}
