package shellquote

import "strings"

// scanner walks over a script. After each method, at is the index after the text that it
// has read.
type scanner struct {
	text  string
	at    int
	holes []Hole
	// lost is why the scanner does not follow the script from here on, or empty.
	lost Problem
	// substitutions counts the $(…) around at. Their end decides how the text after them
	// is read.
	substitutions int
	// word is the unquoted and unexpanded part of the current word, with a HoleMark in
	// the place of everything else. Empty between words.
	word []byte
	// begin is the index of the current word.
	begin int
	// command is the simple command at at.
	command simple
	// array: the parentheses around at are those of x=(…).
	array bool
	// first: the next word is the first of a command.
	first bool
	// target: the next word is the target of a redirection.
	target bool
	// descriptor: the redirection is >& or <&.
	descriptor bool
}

// next returns the byte n after at, or 0 after the end.
func (s *scanner) next(n int) byte {
	if s.at+n < len(s.text) {
		return s.text[s.at+n]
	}
	return 0
}

func (s *scanner) has(prefix string) bool { return strings.HasPrefix(s.text[s.at:], prefix) }

// lose stops following the script: why is the problem of all later holes.
func (s *scanner) lose(why Problem) {
	if s.lost == "" {
		s.lost = why
	}
}

// hole records the hole at at.
func (s *scanner) hole(problem Problem) {
	if problem == "" {
		problem = s.lost
	}
	s.at++
	after := s.next(0)
	begins := len(s.word) == 0 && !s.target
	first := begins && s.first
	// Without quotes, the first word could be a keyword or an assignment, 2>x redirects
	// descriptor 2, and in {a,b} some shells split the word.
	alone := begins && strings.IndexByte(" \t\n;&|<>()", after) >= 0
	if problem == "" && !s.target {
		problem = s.command.problem(string(s.word), alone)
	}
	s.command.own = append(s.command.own, len(s.holes))
	s.holes = append(s.holes, Hole{
		Problem: problem,
		Bare:    !first && after != '<' && after != '>' && !strings.Contains(string(s.word), "{"),
		Alone:   alone,
		First:   first,
	})
	s.opaque()
}

// opaque adds a quoted or expanded part to the word.
func (s *scanner) opaque() { s.word = append(s.word, HoleMark) }

// commands reads commands up to the end, or up to the closing parenthesis.
func (s *scanner) commands(closed bool) {
	s.endCommand()
	for s.at < len(s.text) {
		switch c := s.text[s.at]; c {
		case ')':
			s.endWord()
			s.endCommand() // of a subshell, or the pattern of a case
			s.at++
			if closed {
				return
			}
		case '(':
			s.parenthesis()
		case '#':
			s.number()
		case ' ', '\t':
			s.endWord()
			s.at++
		case '\n', ';', '&', '|':
			s.endWord()
			command := s.command
			s.endCommand()
			if s.has("&>") { // a redirection, in some shells
				s.command = command
			}
			s.at++
		case '<', '>':
			s.redirection()
		default:
			s.wordPart(c)
		}
	}
}

// endCommand makes the next word the first of a command. Inside [[…]], a text that looks
// like the end of a command is an operator.
func (s *scanner) endCommand() {
	s.first, s.target = true, false
	if s.command.name != "[[" {
		s.command = simple{}
	}
}

// wordPart reads the next part of a word, which begins with c.
func (s *scanner) wordPart(c byte) {
	if len(s.word) == 0 {
		s.begin = s.at
	}
	switch c {
	case HoleMark:
		s.hole(s.wordProblem())
	case '\'':
		s.at++
		s.quoted(InsideSingle)
	case '"':
		s.double()
	case '`':
		s.backquotes(false)
	case '\\':
		s.backslash("")
	case '$':
		s.dollar("")
	default:
		s.word = append(s.word, c)
		s.at++
	}
}

// endWord ends the current word, if there is one.
func (s *scanner) endWord() {
	if len(s.word) == 0 {
		return
	}
	if s.substitutions > 0 && string(s.word) == "case" {
		// Its patterns end with an unmatched closing parenthesis.
		s.lose(afterCase)
	}
	if !s.target {
		word := unquoted(s.text[s.begin:s.at])
		assignment := s.first && isAssignment(string(s.word))
		for _, i := range s.command.endWord(word, assignment) {
			if s.holes[i].Problem == "" {
				s.holes[i].Problem = AsNumber
			}
		}
		s.first = s.first && (assignment || isKeyword(string(s.word)))
	}
	s.target = false
	s.word = s.word[:0]
}

// unquoted removes the quotes from a word, as far as that matters for the names of
// commands and options.
func unquoted(word string) string {
	return strings.Map(func(r rune) rune {
		if r == '\'' || r == '"' || r == '\\' {
			return -1
		}
		return r
	}, word)
}

func isAssignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	for i := range len(name) {
		ok = ok && isName(name[i])
	}
	return ok && name != ""
}

// wordProblem returns the problem of a hole in the current word, outside of quotes: bash
// expands the target of >& once more, and in x[…]=… some shells evaluate the subscript,
// as in x=([…]=…).
func (s *scanner) wordProblem() Problem {
	if s.target && s.descriptor {
		return AfterDescriptor
	}
	word := string(s.word)
	name, _, ok := strings.Cut(word, "[")
	if ok && (name != "" || s.array) && !strings.Contains(word, "]") {
		return insideSubscript
	}
	name, _, ok = strings.Cut(word, "=")
	if ok && (s.first || s.command.declares()) && isSpecial(strings.TrimSuffix(name, "+")) {
		return AsSpecial
	}
	return ""
}

// number reads a # and, at the beginning of a word, the comment after it.
func (s *scanner) number() {
	if len(s.word) > 0 {
		s.wordPart('#')
		return
	}
	if s.substitutions > 0 {
		s.lose(afterUnclear) // old shells look for the ) in comments too
	}
	for s.at < len(s.text) && s.text[s.at] != '\n' {
		if s.text[s.at] == HoleMark {
			s.hole(insideComment)
			s.word = s.word[:0]
			continue
		}
		s.at++
	}
}

func (s *scanner) redirection() {
	if strings.Trim(string(s.word), "0123456789") == "" {
		s.word = s.word[:0] // a descriptor
	}
	s.endWord()
	s.descriptor = false
	switch {
	case s.next(1) == '(':
		s.at += 2
		s.substitution() // of a process, in some shells
		return
	case s.has("<<<"):
		s.at += 3
	case s.has("<<"):
		s.lose(afterHereDoc)
		s.at += 2
	case s.next(1) == '&':
		s.at += 2
		s.descriptor = true
	case s.next(1) == '|':
		s.at += 2
	default:
		s.at++
	}
	s.target = true
}

// parenthesis reads a subshell, ((…)), or the () of a function.
func (s *scanner) parenthesis() {
	n := len(s.word)
	array := n > 0 && s.word[n-1] == '='
	if n > 0 && !array && s.next(1) != ')' {
		s.lose(afterUnclear) // a pattern, in some shells
	}
	s.endWord()
	if s.next(1) == '(' {
		s.arithmetic()
		s.word = s.word[:0]
		return
	}
	s.at++
	command, first, around := s.command, s.first, s.array
	s.array = array
	s.commands(true)
	if s.array = around; array {
		s.command, s.first = command, first
	}
}

// substitution reads the commands of $(…), after the parenthesis.
func (s *scanner) substitution() {
	around := *s
	s.word, s.command, s.array = nil, simple{}, false
	s.substitutions++
	s.commands(true)
	around.at, around.holes, around.lost = s.at, s.holes, s.lost
	*s = around
	s.opaque()
}

// quoted reads up to the next single quote.
func (s *scanner) quoted(problem Problem) {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case '\'':
			s.at++
			s.opaque()
			return
		case HoleMark:
			s.hole(problem)
		default:
			s.at++
		}
	}
	s.lose(problem)
}

// double reads a text in double quotes.
func (s *scanner) double() {
	for s.at++; s.at < len(s.text); {
		switch s.text[s.at] {
		case '"':
			s.at++
			s.opaque()
			return
		case HoleMark:
			s.hole(InsideDouble)
		case '\\':
			s.backslash(InsideDouble)
		case '$':
			s.dollar(InsideDouble)
		case '`':
			s.backquotes(true)
		default:
			s.at++
		}
	}
	s.lose(InsideDouble)
}

// backslash reads a backslash and the byte after it.
func (s *scanner) backslash(problem Problem) {
	s.at++
	switch s.next(0) {
	case HoleMark:
		if problem == "" {
			problem = AfterBackslash
		}
		s.hole(problem)
	case '\n':
		// The line continues with the next, and with it a word or an operator.
		if before := s.text[:s.at-1]; before != "" && !strings.HasSuffix(before, " ") && !strings.HasSuffix(before, "\t") {
			s.lose(afterUnclear)
		}
		s.at++
	default:
		s.at++
		s.opaque()
	}
}

// backquotes reads `…`. In all shells it ends at the next backquote without a backslash
// before it, unless quotes are open.
func (s *scanner) backquotes(inDouble bool) {
	var quote byte
	for s.at++; s.at < len(s.text); {
		switch c := s.text[s.at]; {
		case c == '`':
			if quote != 0 {
				s.lose(afterUnclear)
			}
			s.at++
			s.opaque()
			return
		case c == HoleMark:
			s.hole(InsideBackquotes)
			continue
		case c == '\\' || c == '"' && inDouble:
			s.lose(afterUnclear)
		case c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		}
		s.at++
	}
	s.lose(InsideBackquotes)
}
