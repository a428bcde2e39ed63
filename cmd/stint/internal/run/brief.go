package run

import (
	"strings"
	"unicode/utf8"

	"github.com/stintgo/stint/cmd/stint/internal/view"
)

// briefMax is how many bytes of a command or an input a message shows: enough to
// recognize it.
const briefMax = 200

// brief returns the beginning of text on one line, for a message. Its control characters, which
// could change the terminal, are replaced.
func brief(text string) string {
	line, rest, more := strings.Cut(text, "\n")
	line = view.Plain(line)
	if len(line) > briefMax {
		end := briefMax
		for end > 0 && !utf8.RuneStart(line[end]) {
			end--
		}
		return line[:end] + "…"
	}
	if more && rest != "" {
		return line + "…"
	}
	return line
}
