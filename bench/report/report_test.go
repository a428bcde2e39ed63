package report_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stintgo/stint/bench/measure"
	"github.com/stintgo/stint/bench/report"
)

// loops is a result of one round in which our subject takes 30 ns and 2
// allocations, and the peer 60 ns and none.
func loops() measure.Result {
	return measure.Result{
		Case: measure.Case{
			Name:     "work",
			Ours:     "stint",
			Goals:    []string{"time ≤ 0.4× peer", "time ≤ 40 ns", "allocs ≤ 0"},
			Subjects: []measure.Subject{{Name: "stint"}, {Name: "peer"}},
		},
		Samples: [][]measure.Values{
			{{"time": 30, "allocs": 2, "bytes": 48}},
			{{"time": 60, "allocs": 0, "bytes": 0}},
		},
	}
}

func rows(t *testing.T, r measure.Result) []report.Row {
	t.Helper()
	found, err := report.RowsOf("core", r, measure.Trips{Shortest: 100, Longest: 400})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestRowsOfLoops(t *testing.T) {
	text, err := json.Marshal(rows(t, loops()))
	if err != nil {
		t.Fatal(err)
	}
	want := `[` +
		`{"suite":"core","case":"work","subject":"stint","reading":"time","ns_per_op":30,"unit":"ns",` +
		`"allocs":2,"bytes":48,"goal":"≤ 40 ns","met":true},` +
		`{"suite":"core","case":"work","subject":"peer","reading":"time","ns_per_op":60,"unit":"ns",` +
		`"allocs":0,"bytes":0,"ratio":0.5,"goal":"≤ 0.4×","met":false},` +
		`{"suite":"core","case":"work","subject":"stint","reading":"allocs","value":2,"unit":"allocs",` +
		`"goal":"≤ 0","met":false}]`
	if string(text) != want {
		t.Errorf("rows:\n%s\nwant:\n%s", text, want)
	}
}

func TestRowsOfProbes(t *testing.T) {
	found := rows(t, measure.Result{
		Case: measure.Case{
			Name:     "copy",
			Ours:     "stint",
			Readings: []measure.Reading{{Name: "rate", Unit: "/s"}, {Name: "error", Unit: "%"}},
			Goals:    []string{"rate ≥ 2× peer", "error ≤ 0.5 %"},
			Subjects: []measure.Subject{{Name: "stint"}, {Name: "peer"}},
		},
		Samples: [][]measure.Values{{{"rate": 300, "error": 0.25}}, {{"rate": 100, "error": 0.5}}},
	})
	if len(found) != 4 {
		t.Fatalf("%d rows, want one for each reading of each subject", len(found))
	}
	if r := found[1]; *r.PerSecond != 100 || *r.Ratio != 3 || r.Goal != "≥ 2×" || !*r.Met {
		t.Errorf("peer's rate: %+v", r)
	}
	if r := found[2]; *r.Value != 0.25 || r.Goal != "≤ 0.5 %" || !*r.Met {
		t.Errorf("our error: %+v", r)
	}
	if r := found[3]; r.Ratio != nil {
		t.Errorf("ratio of two percentages is %v, want none", *r.Ratio)
	}
}

func TestRatioByZeroIsLeftOut(t *testing.T) {
	r := loops()
	r.Case.Goals = nil
	r.Samples[1][0]["time"] = 0
	if row := rows(t, r)[1]; row.Ratio != nil {
		t.Errorf("ratio is %v, want none: JSON has no infinity", *row.Ratio)
	}
}

func TestFiguresKeepFourDigits(t *testing.T) {
	r := loops()
	r.Samples[0][0]["time"] = 14.87654321
	r.Samples[1][0]["time"] = 123456.789
	found := rows(t, r)
	if *found[0].NsPerOp != 14.88 || *found[1].NsPerOp != 123500 {
		t.Errorf("figures %v and %v, want 14.88 and 123500", *found[0].NsPerOp, *found[1].NsPerOp)
	}
}

func TestMarkdownNamesWhatIsMissed(t *testing.T) {
	book := report.Report{
		Peers: map[string]string{"example.org/peer": "v1.2.3"},
		Runs: map[string]report.Run{"core": {
			Machine: report.Machine{CPU: "a processor", Cores: 2, Go: "go1.26", OS: "linux", Arch: "amd64"},
			Rounds:  5,
		}},
		Rows: rows(t, loops()),
	}
	text := book.Markdown()
	for _, want := range []string{
		"a processor, 2 cores, go1.26, linux/amd64; 5 rounds.",
		"**1 of 3 goals met.**",
		"- work, peer: time 0.5× (goal ≤ 0.4×)",
		"- work, stint: allocs 2 allocs (goal ≤ 0)",
		"Peers: example.org/peer v1.2.3.",
		"| work | stint | 30 ns | 2 | 48 |  |  |  | ≤ 40 ns | met |",
		"|  | peer | 60 ns | 0 | 0 | 0.5 |  |  | ≤ 0.4× | **missed** |",
		"| … allocs | stint | 2 allocs |  |  |  |  |  | ≤ 0 | **missed** |",
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no line %q in:\n%s", want, text)
		}
	}
}

// Three rounds of close cores, of far ones, and of cores that came closer between the two
// samples: only the first two count.
func TestRowsDivideRoundsByTheDistanceOfTheCores(t *testing.T) {
	r := loops()
	r.Samples = [][]measure.Values{
		{{"time": 30}, {"time": 30}, {"time": 30}},
		{{"time": 60}, {"time": 300}, {"time": 30}},
	}
	near, far := measure.Distance{Before: 100, After: 150}, measure.Distance{Before: 400, After: 300}
	r.Distances = [][]measure.Distance{{near, far, far}, {near, far, {Before: 300, After: 100}}}
	peer := rows(t, r)[1]
	if peer.Close == nil || peer.Far == nil {
		t.Fatalf("row %+v has no ratio of close or of far cores", peer)
	}
	if *peer.Close.Ratio != 0.5 || peer.Close.Rounds != 1 || *peer.Far.Ratio != 0.1 || peer.Far.Rounds != 1 {
		t.Errorf("close %v in %d rounds, far %v in %d, want 0.5 and 0.1 in one each",
			*peer.Close.Ratio, peer.Close.Rounds, *peer.Far.Ratio, peer.Far.Rounds)
	}
	book := report.Report{}
	book.Replace("core", []report.Row{peer}, report.Run{Trips: measure.Trips{Shortest: 100, Longest: 400}})
	for _, want := range []string{
		"A cache line went from one core to the other and back in 100 ns to 400 ns.\n",
		"| 0.5 | 0.5 (1) | 0.1 (1) | ≤ 0.4× |",
	} {
		if text := book.Markdown(); !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

func TestMarkdownEscapesItsOwnMarks(t *testing.T) {
	r := loops()
	r.Case.Subjects[1].Name = "a | b"
	r.Case.Goals = nil
	text := report.Report{Rows: rows(t, r)}.Markdown()
	if !strings.Contains(text, `| a \| b |`) {
		t.Errorf("the bar of a name ends a cell:\n%s", text)
	}
}

func TestFigureSizes(t *testing.T) {
	tests := []struct {
		unit  string
		value float64
		want  string
	}{
		{"ns", 5.04, "5.04 ns"},
		{"ns", 9999, "9999 ns"},
		{"ns", 22525, "22.5 µs"},
		{"ns", 8.7e6, "8.7 ms"},
		{"/s", 929, "929 /s"},
		{"/s", 318_000, "318 k/s"},
		{"/s", 16_500_000, "16.5 M/s"},
		{"%", 99.87, "99.9 %"},
		{"B", 56, "56 B"},
		{"B", 1.5 * (1 << 30), "1536 MiB"},
	}
	for _, tt := range tests {
		r := measure.Result{
			Case: measure.Case{
				Name:     "work",
				Readings: []measure.Reading{{Name: "it", Unit: tt.unit}},
				Subjects: []measure.Subject{{Name: "a"}},
			},
			Samples: [][]measure.Values{{{"it": tt.value}}},
		}
		text := report.Report{Rows: rows(t, r)}.Markdown()
		if !strings.Contains(text, "| "+tt.want+" |") {
			t.Errorf("%v %s is not shown as %q in:\n%s", tt.value, tt.unit, tt.want, text)
		}
	}
}

func TestReplaceKeepsTheOtherSuites(t *testing.T) {
	book := report.Report{Rows: []report.Row{
		{Suite: "core", Case: "old"}, {Suite: "core", Case: "older"}, {Suite: "js", Case: "kept"},
	}}
	near := report.Run{Machine: report.Machine{CPU: "a"}, Trips: measure.Trips{Shortest: 100, Longest: 400}}
	far := report.Run{Machine: report.Machine{CPU: "b"}, Trips: measure.Trips{Shortest: 500, Longest: 600}}
	book.Replace("core", []report.Row{{Suite: "core", Case: "new"}}, near)
	book.Replace("run", []report.Row{{Suite: "run", Case: "first"}}, far)
	var order []string
	for _, row := range book.Rows {
		order = append(order, row.Suite+" "+row.Case)
	}
	if got := strings.Join(order, ", "); got != "core new, js kept, run first" {
		t.Errorf("rows are %s", got)
	}
	if book.Runs["core"] != near || book.Runs["run"] != far {
		t.Errorf("the runs are %+v", book.Runs)
	}
	if book.Seen["a"] != near.Trips || book.Seen["b"] != far.Trips {
		t.Errorf("seen are %+v", book.Seen)
	}
}

func TestWriteAndReadBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	if book, err := report.Read(dir); err != nil || len(book.Rows) != 0 {
		t.Fatalf("a report that is not there: %v, %v", book, err)
	}
	book := report.Report{
		Runs: map[string]report.Run{"core": {Machine: report.ThisMachine(), Rounds: 5}},
		Rows: rows(t, loops()),
	}
	if err := book.Write(dir); err != nil {
		t.Fatal(err)
	}
	again, err := report.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if again.Markdown() != book.Markdown() {
		t.Error("what is read back gives another table")
	}
	if err := os.WriteFile(filepath.Join(dir, "results.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := report.Read(dir); err == nil || !strings.Contains(err.Error(), "remove it and run again") {
		t.Errorf("a broken report gives %v", err)
	}
}

func TestThisMachine(t *testing.T) {
	if m := report.ThisMachine(); m.Cores < 1 || m.Go == "" || m.CPU == "" || m.OS == "" || m.Arch == "" {
		t.Errorf("machine is %+v", m)
	}
}
