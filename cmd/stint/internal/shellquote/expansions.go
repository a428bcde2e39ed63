package shellquote

import "strings"

// dollar reads a $ and the expansion that it begins.
func (s *scanner) dollar(problem Problem) {
	s.at++
	switch c := s.next(0); {
	case s.has("(("):
		s.arithmetic()
	case c == '(':
		s.at++
		s.substitution()
	case c == '{':
		s.parameter()
	case c == '[':
		s.lose(afterUnclear) // arithmetic, in some shells
	case c == '\'' && problem == "":
		s.ansi()
	case c == HoleMark:
		if problem == "" {
			problem = AfterDollar
		}
		s.hole(problem)
	case strings.IndexByte("$!?#@*-0123456789", c) >= 0:
		s.at++
	}
	s.opaque()
}

// ansi reads $'…', in which a backslash escapes a quote. Shells without it read single
// quotes.
func (s *scanner) ansi() {
	s.at++
	from := s.at
	s.quoted(InsideSingle)
	if strings.Contains(s.text[from:s.at], `\`) {
		s.lose(afterUnclear)
	}
}

// parameter reads ${…}. The quoting rules inside depend on the operator, on the quotes
// around it and on the shell: it follows only contents without quotes.
func (s *scanner) parameter() {
	s.at++
	if c := s.next(0); strings.IndexByte(" \t\n|", c) >= 0 {
		s.lose(afterUnclear) // commands, in some shells
	}
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '}':
			s.at++
			return
		case c == HoleMark:
			s.hole(insideParameter)
			continue
		case strings.IndexByte("'\"\\`{", c) >= 0, c == '$' && !isName(s.next(1)):
			s.lose(afterUnclear)
		}
		s.at++
	}
	s.lose(insideParameter)
}

// arithmetic reads ((…)), which is two subshells if it is not arithmetic. It follows it
// only if its end is the same in both cases.
func (s *scanner) arithmetic() {
	from, depth := s.at, 0
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == HoleMark:
			s.hole(InsideArithmetic)
			continue
		case c == '(':
			depth++
		case c == ')':
			depth--
		case strings.IndexByte("'\"\\`#", c) >= 0, c == '$' && !isName(s.next(1)):
			s.lose(afterUnclear)
		}
		s.at++
		if depth > 0 {
			continue
		}
		if text := s.text[from:s.at]; strings.Contains(text, "case") || strings.Contains(text, "<<") {
			s.lose(afterUnclear)
		}
		return
	}
	s.lose(InsideArithmetic)
}

func isName(c byte) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
