package input

import (
	"fmt"
	"regexp"
	"strings"
)

// Splitter cuts an input into the fields {1}, {2} … The zero value does not cut: the
// input is its only field.
type Splitter struct {
	text    string         // a literal separator
	pattern *regexp.Regexp // or a regular expression
}

// ParseSplitter parses a column separator. One character stands for itself, so that '|'
// and '.' are literal; \t,
// , \0 and \\ are escapes; anything longer is a regular expression (RE2).
func ParseSplitter(text string) (Splitter, error) {
	if text == "" {
		return Splitter{}, fmt.Errorf("the column separator is empty: give a character or a regular expression")
	}
	if c, ok := parseChar(text); ok {
		return Splitter{text: string(c)}, nil
	}
	pattern, err := regexp.Compile(text)
	if err != nil {
		return Splitter{}, fmt.Errorf("column separator %q: %w", text, err)
	}
	return Splitter{pattern: pattern}, nil
}

// ParseDelimiter parses the end of a record: one character, or
// , \t, \0.
func ParseDelimiter(text string) (byte, error) {
	if c, ok := parseChar(text); ok && len(string(c)) == 1 {
		return byte(c), nil
	}
	return 0, fmt.Errorf("delimiter %q: give one ASCII character, or \\n, \\t or \\0", text)
}

func parseChar(text string) (rune, bool) {
	switch text {
	case `\t`:
		return '\t', true
	case `\n`:
		return '\n', true
	case `\0`:
		return 0, true
	case `\\`:
		return '\\', true
	}
	runes := []rune(text)
	if len(runes) != 1 || string(runes) != text {
		return 0, false
	}
	return runes[0], true
}

// Splits reports whether s cuts inputs.
func (s Splitter) Splits() bool { return s.text != "" || s.pattern != nil }

// Split returns the fields of record, at least one.
func (s Splitter) Split(record string) []string {
	switch {
	case s.pattern != nil:
		return s.pattern.Split(record, -1)
	case s.text != "":
		return strings.Split(record, s.text)
	}
	return []string{record}
}
