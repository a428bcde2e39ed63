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
