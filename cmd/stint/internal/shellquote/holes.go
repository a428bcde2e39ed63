package shellquote

// HoleMark marks a hole, the place of a word, in a script for [Holes]. Arguments of
// programs cannot contain it, so scripts do not either.
const HoleMark = '\x00'

// Hole says how a shell reads a quoted word at one place in a script.
type Hole struct {
	// Problem says why the shell would not read the quotes around the word as quotes. It
	// is empty if the shell reads the word as it was before quoting.
	Problem Problem
	// Bare: words that need no quotes by themselves need none at this place.
	Bare bool
	// Alone: nothing else is part of the word, and it is not the target of a redirection,
	// so that several words may be put here.
	Alone bool
	// First: the word would be the first of a command, which names the program.
	First bool
}

// Problem completes a sentence whose subject is the word in a hole.
type Problem string

// The problems that have remedies of their own.
const (
	InsideSingle     Problem = "is inside single quotes"
	InsideDouble     Problem = "is inside double quotes"
	InsideBackquotes Problem = "is inside backquotes"
	InsideArithmetic Problem = "is inside arithmetic, ((…))"
	AfterBackslash   Problem = "has a backslash before it"
	AfterDollar      Problem = "has a $ before it"
	AfterDescriptor  Problem = "has >& or <& before it"
	AsNumber         Problem = "is evaluated as arithmetic, in some shells"
	AsName           Problem = "is taken for the name of a variable, which some shells evaluate"
	AsCode           Problem = "is a part of what the shell reads as code"
	AsSpecial        Problem = "is the value of a variable that the shell evaluates"
)

// The other problems. Those that begin with "comes after" mean that the scanner does not
// follow the script up to the hole, because shells differ or because that would need a
// complete parser.
const (
	insideComment   Problem = "is in a comment"
	insideParameter Problem = "is inside ${…}"
	insideSubscript Problem = "is inside a subscript, x[…]"
	afterHereDoc    Problem = "comes after a <<"
	afterCase       Problem = "comes after a case inside $(…)"
	afterUnclear    Problem = "comes after syntax that shells read in different ways"
)

// Holes reads a script as a POSIX shell does, and returns the hole at each [HoleMark], in
// order. It errs on the safe side: after syntax that it does not follow, all later holes
// have a problem. If shells differ (dash, bash, ksh and zsh, run as sh), a hole has no
// problem only if it has none in any of them.
//
// The grammar is that of POSIX.1-2024, XCU 2.2 (quoting), 2.3 (tokens), 2.6
// (expansions) and 2.7 (redirections).
func Holes(script string) []Hole {
	// The newline has no effect; with it there is always a byte to read.
	s := scanner{text: script + "\n", first: true}
	s.commands(false)
	return s.holes
}
