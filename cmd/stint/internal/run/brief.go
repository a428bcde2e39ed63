package run

import (
	"strings"
	"unicode/utf8"
)

// briefMax is how many bytes of a command or an input a message shows. That is
// enough to know it by; the longest are a thousand times as long.
const briefMax = 200

// brief is the beginning of text, as part of one line of a message.
func brief(text string) string {
	line, rest, more := strings.Cut(text, "\n")
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
