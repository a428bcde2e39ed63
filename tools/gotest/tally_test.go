package main

import (
	"strings"
	"testing"
)

func TestTally(t *testing.T) {
	tests := []struct {
		name   string
		stream []string
		ok     bool
		want   []string // must be in the output, in this order
		hide   string   // must not be in it
	}{
		{
			name: "passing tests are counted and quiet, subtests included",
			stream: []string{
				`{"Action":"output","Package":"p","Test":"TestA","Output":"seed 7\n"}`,
				`{"Action":"pass","Package":"p","Test":"TestA/sub"}`,
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Output":"PASS\n"}`,
				`{"Action":"output","Package":"p","Output":"ok  \tp\t0.01s\n"}`,
				`{"Action":"pass","Package":"p"}`,
			},
			ok:   true,
			want: []string{"ok  \tp\t0.01s\n", "\n2 passed, 0 failed\n"},
			hide: "seed 7",
		},
		{
			name: "a failed test says all it has to say and is counted once",
			stream: []string{
				`{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"seed 7\n"}`,
				`{"Action":"fail","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Output":"FAIL\tp\t0.01s\n"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			want: []string{"seed 7\n", "FAIL\tp\t0.01s\n", "p.TestA failed\n", "\n0 passed, 1 failed\n"},
			hide: "=== RUN",
		},
		{
			name: "a package that does not build",
			stream: []string{
				`{"ImportPath":"p","Action":"build-output","Output":"p.go:1: syntax error\n"}`,
				`{"ImportPath":"p","Action":"build-fail"}`,
				`{"Action":"fail","Package":"p"}`,
				`{"Action":"pass","Package":"q","Test":"TestB"}`,
			},
			want: []string{"syntax error", "p failed\n", "\n1 passed, 1 failed\n"},
		},
		{
			name: "a package that dies shows what its tests were doing",
			stream: []string{
				`{"Action":"output","Package":"p","Test":"TestA","Output":"SIGQUIT: quit\n"}`,
				`{"Action":"output","Package":"p","Output":"FAIL\tp\t9.01s\n"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			want: []string{"FAIL\tp\t9.01s\n", "SIGQUIT: quit\n", "p failed\n", "\n0 passed, 1 failed\n"},
		},
		{
			name: "a skipped test is not a passed one",
			stream: []string{
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Test":"TestB","Output":"no database\n"}`,
				`{"Action":"skip","Package":"p","Test":"TestB"}`,
			},
			want: []string{"no database\n", "p.TestB skipped\n", "\n1 passed, 1 failed\n"},
		},
		{
			name:   "a package without tests is no test",
			stream: []string{`{"Action":"skip","Package":"p"}`},
			want:   []string{"no test ran\n", "\n0 passed, 0 failed\n"},
		},
		{
			name:   "what is not an event is shown",
			stream: []string{"go: downloading a module", `{"Action":"pass","Package":"p","Test":"TestA"}`},
			ok:     true,
			want:   []string{"go: downloading a module\n", "\n1 passed, 0 failed\n"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out strings.Builder
			tally := newTally(&out)
			for _, line := range test.stream {
				tally.line([]byte(line + "\n"))
			}
			if ok := tally.report(); ok != test.ok {
				t.Errorf("report() = %t, want %t", ok, test.ok)
			}
			rest := out.String()
			for _, want := range test.want {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Fatalf("no %q (in order) in the output:\n%s", want, out.String())
				}
				// The line break that ends one line starts the next match.
				rest = "\n" + after
			}
			if test.hide != "" && strings.Contains(out.String(), test.hide) {
				t.Errorf("%q should not be in the output:\n%s", test.hide, out.String())
			}
		})
	}
}

func TestRunReportsWhatGoTestCannotDo(t *testing.T) {
	var out strings.Builder
	tally := newTally(&out)
	err := run(t.Context(), t.TempDir(), []string{"-no-such-flag"}, tally)
	if err == nil {
		t.Fatal("run with a flag that go test does not know gave no error")
	}
	tally.broken("elsewhere", err)
	if tally.report() || !strings.Contains(out.String(), "go test in elsewhere: exit status") {
		t.Errorf("the report does not name the module:\n%s", out.String())
	}
}

func TestSplit(t *testing.T) {
	modules, rest, err := split([]string{".", "bench", "--", "-race", "./..."})
	if err != nil || strings.Join(modules, " ") != ". bench" || strings.Join(rest, " ") != "-race ./..." {
		t.Errorf("split = %q, %q, %v", modules, rest, err)
	}
	for _, bad := range [][]string{nil, {"."}, {"--", "./..."}} {
		if _, _, err := split(bad); err == nil {
			t.Errorf("split(%q) gave no error", bad)
		}
	}
}
