package queue_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stintgo/stint/queue"
)

var update = flag.Bool("update", false, "write the drawing of the states into docs/states.md")

const (
	statesPage = "../docs/states.md"
	drawnFrom  = "<!-- made by go test ./queue -update -->\n"
	drawnTo    = "<!-- end of what is made -->\n"
)

// The page has the drawing and the table that the code has.
func TestC4_StatesAreDrawnAsTheyAre(t *testing.T) {
	page, err := os.ReadFile(statesPage)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(page), drawnFrom)
	_, tail, ok2 := strings.Cut(rest, drawnTo)
	if !ok1 || !ok2 {
		t.Fatalf("%s has not the lines %q and %q", statesPage, drawnFrom, drawnTo)
	}
	want := head + drawnFrom + drawing() + "\n" + table() + drawnTo + tail
	if want == string(page) {
		return
	}
	if !*update {
		t.Fatalf("%s is out of date: run go test ./queue -update", statesPage)
	}
	if err := os.WriteFile(statesPage, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// drawing is the table as a state diagram in Mermaid's notation.
func drawing() string {
	var b strings.Builder
	b.WriteString("```mermaid\nstateDiagram-v2\n")
	for _, a := range arrows() {
		fmt.Fprintf(&b, "    %s --> %s: %s\n", a.from, a.to, strings.Join(a.on, ", "))
	}
	b.WriteString("```\n")
	return b.String()
}

// arrow is all that leads from one state to another.
type arrow struct {
	from, to string
	on       []string
}

func arrows() (all []arrow) {
	for _, line := range queue.Transitions() {
		to := line.To
		if len(to) == 0 {
			to = []queue.State{0}
		}
		for _, state := range to {
			from, to := drawn(line.From), drawn(state)
			i := slices.IndexFunc(all, func(a arrow) bool { return a.from == from && a.to == to })
			if i < 0 {
				i = len(all)
				all = append(all, arrow{from: from, to: to})
			}
			all[i].on = append(all[i].on, line.On.String())
		}
	}
	return all
}

func drawn(s queue.State) string {
	if s == 0 {
		return "[*]"
	}
	return s.String()
}

func table() string {
	var b strings.Builder
	b.WriteString("| from | on | to |\n|---|---|---|\n")
	for _, line := range queue.Transitions() {
		from, to := "", []string{"forgotten"}
		if line.From != 0 {
			from = line.From.String()
		}
		if len(line.To) > 0 {
			to = nil
		}
		for _, state := range line.To {
			to = append(to, state.String())
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", from, line.On, strings.Join(to, ", "))
	}
	return b.String()
}
