package stint_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stintgo/stint"
)

func TestB1_ParsePriority(t *testing.T) {
	for text, want := range map[string]stint.Priority{
		"lowest": stint.Lowest, "lower": stint.Lower, "low": stint.Low, "normal": stint.Normal,
		"high": stint.High, "higher": stint.Higher, "highest": stint.Highest,
		"idle": stint.Lowest, "critical": stint.Highest,
		"-3": -3, "-2": -2, "-1": -1, "0": 0, "1": 1, "2": 2, "3": 3, "+3": 3,
		" High\n": stint.High, "CRITICAL": stint.Highest,
	} {
		if got, err := stint.ParsePriority(text); got != want || err != nil {
			t.Errorf("ParsePriority(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestB1_UnknownTextIsAnError(t *testing.T) {
	for _, text := range []string{"", "urgent", "4", "-4", "1.5", "high low", "９"} {
		_, err := stint.ParsePriority(text)
		if !errors.Is(err, stint.ErrPriority) {
			t.Errorf("ParsePriority(%q): error is %v, want ErrPriority", text, err)
			continue
		}
		if !strings.Contains(err.Error(), "lowest") || !strings.Contains(err.Error(), "critical") {
			t.Errorf("the error does not say what to write: %v", err)
		}
	}
}

func TestB1_SevenTiers(t *testing.T) {
	tiers := []stint.Priority{
		stint.Lowest, stint.Lower, stint.Low, stint.Normal, stint.High, stint.Higher, stint.Highest,
	}
	if len(tiers) != stint.Tiers {
		t.Fatalf("%d tiers, want %d", stint.Tiers, len(tiers))
	}
	for i, p := range tiers {
		if int(p) != i-3 || !p.Valid() {
			t.Errorf("tier %v is number %d, want %d", p, int(p), i-3)
		}
		if back, err := stint.ParsePriority(p.String()); back != p || err != nil {
			t.Errorf("%v reads back as %v, %v", p, back, err)
		}
	}
	for _, p := range []stint.Priority{-4, 4, 100} {
		if p.Valid() || !strings.Contains(p.String(), "priority(") {
			t.Errorf("%v is not a tier", p)
		}
	}
}

func TestB1_Text(t *testing.T) {
	type job struct{ P stint.Priority }
	text, err := json.Marshal(job{stint.Higher})
	if string(text) != `{"P":"higher"}` || err != nil {
		t.Errorf("marshalled as %s, %v", text, err)
	}
	var back job
	if err := json.Unmarshal([]byte(`{"P":"idle"}`), &back); back.P != stint.Lowest || err != nil {
		t.Errorf("unmarshalled as %v, %v", back.P, err)
	}
	if err := json.Unmarshal([]byte(`{"P":"soon"}`), &back); !errors.Is(err, stint.ErrPriority) {
		t.Errorf("error is %v, want ErrPriority", err)
	}
	if _, err := json.Marshal(job{9}); !errors.Is(err, stint.ErrPriority) {
		t.Errorf("a value that is no tier was marshalled: %v", err)
	}
}

func TestB1_Context(t *testing.T) {
	ctx := context.Background()
	if p := stint.PriorityFrom(ctx); p != stint.Normal {
		t.Errorf("without one it is %v, want normal", p)
	}
	ctx, cancel := context.WithCancel(stint.WithPriority(ctx, stint.Low))
	defer cancel()
	if p := stint.PriorityFrom(ctx); p != stint.Low {
		t.Errorf("it is %v, want low", p)
	}
	for _, p := range []stint.Priority{-4, 4} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v was accepted", p)
				}
			}()
			stint.WithPriority(ctx, p)
		}()
	}
}

func FuzzParsePriority(f *testing.F) {
	for _, text := range []string{"low", "critical", "+3", "-3", "", "\xff", "00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := stint.ParsePriority(text)
		if err == nil && !p.Valid() {
			t.Fatalf("ParsePriority(%q) = %v", text, p)
		}
		if err != nil {
			if !errors.Is(err, stint.ErrPriority) || p != stint.Normal {
				t.Fatalf("ParsePriority(%q) = %v, %v", text, p, err)
			}
			return
		}
		if back, err := stint.ParsePriority(p.String()); back != p || err != nil {
			t.Fatalf("%q is %v, which reads back as %v, %v", text, p, back, err)
		}
	})
}
