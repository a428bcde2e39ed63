// Package template turns the words of a command into those of one job, by replacing
// placeholders with the job's inputs.
//
//	{}    the input                     {1}    its first field
//	{.}   without its extension         {1.}   likewise, of the field
//	{/}   without its directory         {1/}
//	{//}  the directory                 {1//}
//	{/.}  without directory, extension  {1/.}
//	{#}   the job's number, from 1      {%}    the slot that it runs on, from 1
//
// Any other text in braces stays as it is, so that awk programs and find's own {} \;
// work; -I replaces {} by another text if they conflict.
package template

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrField is wrapped by the error of a job whose input has fewer fields than the command
// refers to.
var ErrField = errors.New("no such field")

// Job has the values that fill in a template.
type Job struct {
	Seq    int      // the job's number, from 1
	Slot   int      // the slot that it runs on, from 1; 0 keeps {%}
	Args   []string // its inputs: one, unless -n or several ::: lists are used
	Fields []string // the values of {1}, {2} …
}

// Template is one parsed word. The zero value is the empty word.
type Template struct {
	parts []part
	// spread: the word becomes one word for each of a job's inputs.
	spread bool
}

// part is literal text, or a placeholder for a field after trim.
type part struct {
	text  string // as in the template
	what  what
	trim  trim
	field int // from 1; 0 is the whole input
}

type what uint8

const (
	literal what = iota
	input
	seq
	slot
)

type trim uint8

const (
	whole  trim = iota
	noExt       // {.}
	base        // {/}
	dir         // {//}
	baseNE      // {/.}
)

// Parse parses a word. If name is not empty, it replaces {} as the placeholder of the
// input. Every text is a valid template: everything except placeholders is literal.
func Parse(word, name string) Template {
	if name == "" {
		name = "{}"
	}
	var t Template
	for word != "" {
		at, length, p := nextPlaceholder(word, name)
		if at > 0 {
			t.parts = append(t.parts, part{text: word[:at]})
		}
		if length > 0 {
			p.text = word[at : at+length]
			t.parts = append(t.parts, p)
			t.spread = t.spread || p.what == input && p.field == 0
		}
		word = word[at+length:]
	}
	return t
}

// nextPlaceholder finds the first placeholder of word. If there is none, it returns the
// end of word and a length of 0.
func nextPlaceholder(word, name string) (at, length int, p part) {
	for i := range len(word) {
		if strings.HasPrefix(word[i:], name) {
			return i, len(name), part{what: input}
		}
		if word[i] != '{' {
			continue
		}
		end := strings.IndexByte(word[i:], '}')
		if end < 0 {
			continue // name may still follow
		}
		if p, ok := parsePlaceholder(word[i+1 : i+end]); ok {
			return i, end + 1, p
		}
	}
	return len(word), 0, part{}
}

// parsePlaceholder parses the text between two braces, except {} itself, which may have
// been given another name.
func parsePlaceholder(inner string) (part, bool) {
	switch inner {
	case "":
		return part{}, false
	case "#":
		return part{what: seq}, true
	case "%":
		return part{what: slot}, true
	}
	digits := len(inner) - len(strings.TrimLeft(inner, "0123456789"))
	p := part{what: input}
	if digits > 0 {
		n, err := strconv.Atoi(inner[:digits])
		if err != nil || n == 0 || inner[0] == '0' {
			return part{}, false
		}
		p.field = n
	}
	switch inner[digits:] {
	case "":
	case ".":
		p.trim = noExt
	case "/":
		p.trim = base
	case "//":
		p.trim = dir
	case "/.":
		p.trim = baseNE
	default:
		return part{}, false
	}
	return p, true
}

// HasPlaceholder reports whether the word depends on the job.
func (t Template) HasPlaceholder() bool {
	for _, p := range t.parts {
		if p.what != literal {
			return true
		}
	}
	return false
}

// Input returns the first placeholder of t for a part of the input, as it was typed, or
// "".
func (t Template) Input() string {
	for _, p := range t.parts {
		if p.what == input {
			return p.text
		}
	}
	return ""
}

// AppendWords appends the words of t: one, or one for each input if t has a placeholder
// for the whole input ("-f{}" with inputs a and b becomes "-fa" and "-fb").
func (t Template) AppendWords(words []string, job *Job) ([]string, error) {
	if !t.spread || len(job.Args) == 1 {
		word, err := t.String(job)
		return append(words, word), err
	}
	one := *job
	for i := range job.Args {
		one.Args = job.Args[i : i+1]
		word, err := t.String(&one)
		if err != nil {
			return words, err
		}
		words = append(words, word)
	}
	return words, nil
}

// String returns t filled in as one unquoted text. Several inputs are separated by
// spaces.
func (t Template) String(job *Job) (string, error) {
	if len(t.parts) == 1 {
		switch p := t.parts[0]; {
		case p.what == literal:
			return p.text, nil // most words of most commands: no copy
		case p.what == input && p.field == 0 && len(job.Args) == 1:
			return p.trim.of(job.Args[0]), nil
		}
	}
	var text []byte
	for i := range t.parts {
		var err error
		if text, err = t.parts[i].appendTo(text, job, asIs); err != nil {
			return "", err
		}
	}
	return string(text), nil
}

func asIs(dst []byte, word string) []byte { return append(dst, word...) }

// appendTo appends the value of p for a job. write appends one word.
func (p *part) appendTo(dst []byte, job *Job, write func([]byte, string) []byte) ([]byte, error) {
	switch p.what {
	case literal:
		dst = append(dst, p.text...)
	case seq:
		dst = write(dst, strconv.Itoa(job.Seq))
	case slot:
		if job.Slot == 0 {
			// The job log and a dry run show the command before it has a slot, and a
			// resumed run must recognize the job on any slot.
			return append(dst, p.text...), nil
		}
		dst = write(dst, strconv.Itoa(job.Slot))
	case input:
		values, err := p.values(job)
		if err != nil {
			return dst, err
		}
		for i, value := range values {
			if i > 0 {
				dst = append(dst, ' ')
			}
			dst = write(dst, p.trim.of(value))
		}
	}
	return dst, nil
}

func (p *part) values(job *Job) ([]string, error) {
	if p.field == 0 {
		return job.Args, nil
	}
	if p.field > len(job.Fields) {
		return nil, fmt.Errorf("%w: the command asks for {%d}, the input has %d", ErrField, p.field, len(job.Fields))
	}
	return job.Fields[p.field-1 : p.field], nil
}

func (t trim) of(value string) string {
	switch t {
	case noExt:
		return withoutExtension(value)
	case base:
		return value[strings.LastIndexByte(value, '/')+1:]
	case dir:
		return directory(value)
	case baseNE:
		return withoutExtension(value[strings.LastIndexByte(value, '/')+1:])
	case whole:
	}
	return value
}

// withoutExtension keeps the dot of names that begin with one: .bashrc has no extension.
func withoutExtension(path string) string {
	name := strings.LastIndexByte(path, '/') + 1
	if dot := strings.LastIndexByte(path, '.'); dot > name {
		return path[:dot]
	}
	return path
}

func directory(path string) string {
	switch slash := strings.LastIndexByte(path, '/'); slash {
	case -1:
		return "."
	case 0:
		return "/"
	default:
		return path[:slash]
	}
}
