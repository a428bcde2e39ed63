package main

import (
	"net/http"
	"testing"

	"github.com/stintgo/stint"
)

func TestB9_HeaderSetsTheTier(t *testing.T) {
	tests := []struct {
		fields []string
		want   stint.Priority
	}{
		{nil, stint.Normal},
		{[]string{"u=0"}, stint.Highest},
		{[]string{"u=1"}, stint.Higher},
		{[]string{"u=2"}, stint.High},
		{[]string{"u=3"}, stint.Normal},
		{[]string{"u=4"}, stint.Low},
		{[]string{"u=5"}, stint.Lower},
		{[]string{"u=6"}, stint.Lowest},
		{[]string{"u=7"}, stint.Lowest},

		{[]string{"u=5, i"}, stint.Lower},
		{[]string{"i,u=5"}, stint.Lower},
		{[]string{"i", "u=5"}, stint.Lower},
		{[]string{" u=5 "}, stint.Lower},
		{[]string{"u=5;x=1;y"}, stint.Lower},
		{[]string{"u=1, u=5"}, stint.Lower}, // the last one counts
		{[]string{`x="a, u=1 \\", u=5`}, stint.Lower},
		{[]string{`x="a, u=1 \"", u=5`}, stint.Lower},
		{[]string{"x=(a b), u=5"}, stint.Lower},
		{[]string{"i;x, u=5"}, stint.Lower},
		{[]string{`i;x="a, u=1";y=2, u=5`}, stint.Lower},
		{[]string{"i"}, stint.Normal},

		// Ignored values.
		{[]string{"u=8"}, stint.Normal},
		{[]string{"u=-1"}, stint.Normal},
		{[]string{"u=1.0"}, stint.Normal},
		{[]string{"u=high"}, stint.Normal},
		{[]string{`u="1"`}, stint.Normal},
		{[]string{"u"}, stint.Normal},
		{[]string{"u=1, u;x=0"}, stint.Normal},
		{[]string{"u=1, u=9"}, stint.Normal},

		// Invalid dictionaries.
		{[]string{""}, stint.Normal},
		{[]string{"u=1,"}, stint.Normal},
		{[]string{"u=1,,i"}, stint.Normal},
		{[]string{"u = 1"}, stint.Normal},
		{[]string{"U=1"}, stint.Normal},
		{[]string{"u="}, stint.Normal},
		{[]string{"u=1, i;"}, stint.Normal},
		{[]string{`u=1, x="`}, stint.Normal},
		{[]string{`x="a \", u=1`}, stint.Normal},
		{[]string{"1"}, stint.Normal},
	}
	for _, test := range tests {
		if got := priorityOf(http.Header{"Priority": test.fields}); got != test.want {
			t.Errorf("Priority %q is %v, want %v", test.fields, got, test.want)
		}
	}
}

// Every header has a tier, and a u that follows a dictionary counts.
func FuzzPriority(f *testing.F) {
	for _, seed := range []string{"u=0", "u=7, i", `x="a, \"", u=1;y`, "u=1,,", "=", `"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, field string) {
		tier := priorityOf(http.Header{"Priority": {field}})
		if !tier.Valid() {
			t.Errorf("%q is %v", field, tier)
		}
		if next := priorityOf(http.Header{"Priority": {field, "u=0"}}); tier != stint.Normal && next != stint.Highest {
			t.Errorf("%q is %v, and with u=0 behind it %v", field, tier, next)
		}
	})
}
