package jobcount_test

import (
	"strings"
	"testing"

	"github.com/stintgo/stint/cmd/stint/internal/jobcount"
)

func TestParse(t *testing.T) {
	m := jobcount.Machine{CPUs: 6, Most: 100}
	for text, want := range map[string]int{
		"1": 1, "8": 8, "0": 100, "1000": 100, "50%": 3, "1%": 1, "250%": 15, "+2": 8, "-1": 5, "-6": 1, "-99": 1,
		" 3\n": 3, "+0": 6,
	} {
		if got, err := jobcount.Parse(text, m); err != nil || got != want {
			t.Errorf("%q = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "1.5", "%", "0%", "+50%", "-5%", "--1", "99999999999", "2 3"} {
		if got, err := jobcount.Parse(text, m); err == nil || !strings.Contains(err.Error(), "50%") {
			t.Errorf("%q = %d, %v; want an error with an example", text, got, err)
		}
	}
}

func TestFits(t *testing.T) {
	m := jobcount.Machine{CPUs: 6, Most: 100}
	for text, want := range map[string]bool{
		"0": true, "100": true, "101": false, "1000": false, "1666%": true, "1700%": false, "+94": true, "+95": false,
		"2147483647": false, "x": true, "-99": true,
	} {
		if got := jobcount.Fits(text, m); got != want {
			t.Errorf("%q fits: %t, want %t", text, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"2", "0", "50%", "+2", "-1", "", "2147483647%"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := jobcount.Parse(text, jobcount.Machine{CPUs: 4, Most: 64})
		if err == nil && (n < 1 || n > 64) {
			t.Errorf("%q = %d", text, n)
		}
	})
}
