package main

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stintgo/stint/bench/measure"
	"github.com/stintgo/stint/bench/report"
)

func TestFindKeepsTheOrderOfSuites(t *testing.T) {
	found, err := find([]string{"js", " core"})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 || found[0].name != "core" || found[1].name != "js" {
		t.Errorf("found %v", found)
	}
	_, err = find([]string{"core", "cor"})
	if err == nil || !strings.Contains(err.Error(), `no suite "cor"; there are core, `) {
		t.Errorf("err = %v", err)
	}
}

func TestOncePassWritesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := bench(measure.Once(), selection{suites: []string{"backlog"}}, dir); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) > 0 {
		t.Errorf("wrote %v", entries)
	}
}

func TestNoRoundsIsAnError(t *testing.T) {
	if err := bench(measure.Full(0), selection{suites: []string{"backlog"}}, t.TempDir()); err == nil {
		t.Error("0 rounds gave no error")
	}
}

// The table is made from the file; the test fails if only one of them was edited.
func TestTheTableSaysWhatTheFileSays(t *testing.T) {
	book, err := report.Read(".")
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("RESULTS.md")
	if errors.Is(err, fs.ErrNotExist) && len(book.Rows) == 0 {
		return // nothing has been measured, and neither of them says otherwise
	}
	if err != nil {
		t.Fatal(err)
	}
	if string(table) != book.Markdown() {
		t.Error("RESULTS.md is not what results.json gives; run make bench")
	}
}

func TestPeersAreThoseOfTheirOwnSake(t *testing.T) {
	versions, err := peerVersions()
	if err != nil {
		t.Fatal(err)
	}
	for _, peer := range []string{"golang.org/x/sync", "github.com/alitto/pond/v2", "p-limit"} {
		if versions[peer] == "" {
			t.Errorf("no version of %s in %v", peer, versions)
		}
	}
	for _, other := range []string{"github.com/stintgo/stint", "go.uber.org/multierr", "go"} {
		if v, ok := versions[other]; ok {
			t.Errorf("%s %s is not a peer", other, v)
		}
	}
}
