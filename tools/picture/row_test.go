package main

import (
	"fmt"
	"strings"
	"testing"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

func TestRuns(t *testing.T) {
	// Capitals are red.
	tests := []struct{ name, row, want string }{
		{"one space stays", "ab c  ", "[0:ab c]"},
		{"two or more spaces end a run", "a  b   c", "[0:a][3:b][7:c]"},
		{"an empty row has none", "    ", ""},
		{"leading spaces are left out", "  12 x", "[2:12 x]"},
		{"colours end a run", "abCDe", "[0:ab][2:CD][4:e]"},
		{"a space before another colour is not drawn", "ab C", "[0:ab][3:C]"},
		{"blocks are not letters", "a██░░ b", "[0:a][1:██][3:░░][6:b]"},
		{"blocks do not join over a gap", "█ █", "[0:█][2:█]"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var cells []uv.Cell
			for _, r := range test.row {
				c := uv.Cell{Content: string(r), Width: 1}
				if r >= 'A' && r <= 'Z' {
					c.Style.Fg = ansi.Red
				}
				cells = append(cells, c)
			}
			var got strings.Builder
			for _, r := range runs(cells) {
				fmt.Fprintf(&got, "[%d:%s]", r.column, r.text)
			}
			if got.String() != test.want {
				t.Errorf("runs of %q are %s, want %s", test.row, got.String(), test.want)
			}
		})
	}
}
