package retry_test

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint/retry"
)

func TestA7_Parse(t *testing.T) {
	for text, want := range map[string]retry.Policy{
		"3":                    {Attempts: 3},
		"5,1s":                 {Attempts: 5, Base: time.Second},
		"5,200ms,2x,30s":       {Attempts: 5, Base: 200 * time.Millisecond, Factor: 2, Max: 30 * time.Second},
		" 4 , 1.5x , full ":    {Attempts: 4, Factor: 1.5, Jitter: retry.Full},
		"equal":                {Jitter: retry.Equal},
		"decorrelated,2s,1m,7": {Attempts: 7, Base: 2 * time.Second, Max: time.Minute, Jitter: retry.Decorrelated},
		"3,200ms,2x,30s,none":  {Attempts: 3, Base: 200 * time.Millisecond, Factor: 2, Max: 30 * time.Second},
		"2147483647,1x":        {Attempts: math.MaxInt32, Factor: 1},
	} {
		if got, err := retry.Parse(text); err != nil || got != want {
			t.Errorf("Parse(%q) = %+v, %v, want %+v", text, got, err, want)
		}
	}
}

func TestA7_ParseRefuses(t *testing.T) {
	for text, word := range map[string]string{
		"":          `"" is none of attempts (3), delay (200ms)`,
		"3,":        `"" is none of`,
		"0":         `"0" is not a valid number of attempts; leave it out for the default`,
		"-1":        `"-1" is not a valid number of attempts`,
		"3,4":       `"4" is a second number of attempts`,
		"0.5x":      `"0.5x" is not a valid factor`,
		"0x":        `"0x" is not a valid factor`,
		"nanx":      `"nanx" is not a valid factor`,
		"x":         `"x" is not a valid factor`,
		"infx":      `factor +Inf is not a number from 1 up`,
		"2x,3x":     `"3x" is a second factor`,
		"0s":        `"0s" is not a valid base delay`,
		"-1s":       `"-1s" is not a valid base delay`,
		"1s,0s":     `"0s" is not a valid max delay`,
		"1s,2s,3s":  `"3s" is a second max delay`,
		"2s,1s":     `base 2s is above max 1s`,
		"full,full": `"full" is a second jitter`,
		"soon":      `"soon" is none of`,
		"1e3":       `"1e3" is none of`,
	} {
		_, err := retry.Parse(text)
		if !errors.Is(err, retry.ErrPolicy) || !strings.Contains(err.Error(), word) {
			t.Errorf("Parse(%q): %v, want %s", text, err, word)
		}
	}
}

func TestA7_PolicyText(t *testing.T) {
	for want, policy := range map[string]retry.Policy{
		"3,200ms,2x,30s,none":         {},
		"3,200ms,2x,30s,decorrelated": retry.TaskPolicy(),
		"3,1h0m0s,2x,1h0m0s,none":     {Base: time.Hour},
		"3,1ms,1.25x,1ms,equal":       {Max: time.Millisecond, Factor: 1.25, Jitter: retry.Equal},
	} {
		if got := policy.String(); got != want {
			t.Errorf("String of %+v = %q, want %q", policy, got, want)
		}
		stored, err := json.Marshal(policy)
		if err != nil || string(stored) != strconv.Quote(want) {
			t.Errorf("JSON of %v: %s, %v", policy, stored, err)
		}
		var read retry.Policy
		if err := json.Unmarshal(stored, &read); err != nil || read.String() != want {
			t.Errorf("read from JSON: %v, %v, want %s", read, err, want)
		}
	}
	if _, err := json.Marshal(retry.Policy{Attempts: -1}); !errors.Is(err, retry.ErrPolicy) {
		t.Errorf("JSON of an invalid policy: %v", err)
	}
	var read retry.Policy
	if err := json.Unmarshal([]byte(`"0"`), &read); !errors.Is(err, retry.ErrPolicy) {
		t.Errorf("from invalid JSON: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"3", "5,200ms,2x,30s,decorrelated", "", ",", "0", "-1,-1s", "infx", "1e308x,1ns", "full,full", " 7 , 1h ",
		"9223372036854775808", "2562047h47m16.854775807s", "\x00", "3,1s,\xff",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		policy, err := retry.Parse(text)
		if err != nil {
			if !errors.Is(err, retry.ErrPolicy) || policy != (retry.Policy{}) {
				t.Fatalf("Parse(%q) = %+v, %v", text, policy, err)
			}
			return
		}
		again, err := retry.Parse(policy.String())
		if err != nil || again.String() != policy.String() {
			t.Fatalf("Parse(%q) = %v, and of its text: %v, %v", text, policy, again, err)
		}
	})
}
