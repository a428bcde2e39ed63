package shellquote

import "strings"

// simple is the simple command that a scanner reads. Some built-in commands evaluate
// their words once more after quote removal: in bash, [[ 'a[$(id)]' -eq 1 ]] runs id.
// These commands were found by running bash, dash, ksh93, mksh, zsh, busybox and yash on
// inputs that create a file.
type simple struct {
	// name is the first word without its quotes, or empty until that word has ended.
	name string
	// args counts the words after the name, without options.
	args int
	// option is the last word, if it begins with a minus.
	option string
	// optioned: one of the words was an option.
	optioned bool
	// own and before are the indexes of the holes in the current word and in the word
	// before it, without holes in the substitutions of a word.
	own, before []int
	// operand: the word before is an operator that compares numbers.
	operand bool
}

// evaluated returns how a command evaluates all its words.
func evaluated(command string) Problem {
	switch command {
	case "let", "shift", "ulimit", "integer", "float":
		return AsNumber
	case "unset", "read", "getopts", "mapfile", "readarray", "nameref", "vared", "zparseopts":
		return AsName
	case "alias", "compgen", "emulate":
		return AsCode
	}
	return ""
}

// naming reports whether an option of a command takes the name of a variable.
func naming(command, option string) bool {
	if !strings.HasPrefix(option, "-") {
		return false
	}
	switch command {
	case "printf", "print":
		return strings.Contains(option, "v")
	case "set":
		return strings.Contains(option, "A")
	case "wait":
		return strings.Contains(option, "p")
	}
	return false
}

// isSpecial reports whether some shell evaluates the value of a variable as arithmetic,
// or expands it.
func isSpecial(name string) bool {
	switch name {
	case "PS4", "ENV", "BASH_ENV", "OPTIND", "RANDOM", "SECONDS", "TMOUT", "COLUMNS", "LINES", "PPID",
		"HISTSIZE", "SAVEHIST", "SHLVL", "MAILCHECK":
		return true
	}
	return false
}

// isKeyword reports whether a word is followed by the first word of a command.
func isKeyword(word string) bool {
	switch word {
	case "!", "{", "if", "then", "elif", "else", "while", "until", "do":
		return true
	}
	return false
}

// isPrefix reports whether a command runs the command after it and its options.
func isPrefix(word string) bool {
	switch word {
	case "time", "coproc", "command", "builtin", "exec", "noglob", "nocorrect":
		return true
	}
	return false
}

// compares reports whether an operator of a test compares numbers.
func compares(word string) bool {
	switch word {
	case "-eq", "-ne", "-lt", "-le", "-gt", "-ge":
		return true
	}
	return false
}

func (c *simple) tests() bool { return c.name == "[" || c.name == "[[" || c.name == "test" }

func (c *simple) declares() bool {
	switch c.name {
	case "declare", "typeset", "local", "export", "readonly":
		return true
	}
	return false
}

// problem returns the problem of a hole after prefix, which is a part of its word, or
// empty. alone is [Hole.Alone].
func (c *simple) problem(prefix string, alone bool) Problem {
	switch {
	case c.tests() && (c.operand || c.option == "-t"):
		return AsNumber
	case c.tests() && (c.option == "-v" || c.option == "-R"):
		return AsName
	case c.declares() && (c.optioned || !isAssignment(prefix)):
		return AsName
	case c.name == "eval" && (c.args > 0 || !alone), c.name == "trap" && c.args == 0 && !alone:
		return AsCode // unless all of the code is one input, which is meant to be code
	}
	if c.args == 0 && naming(c.name, c.option+prefix) {
		return AsName
	}
	return evaluated(c.name)
}

// endWord processes a word that has ended. It returns the holes that are operands of a
// comparison.
func (c *simple) endWord(word string, assignment bool) (operands []int) {
	if !assignment {
		operands = c.take(word)
	}
	c.before, c.own = c.own, nil
	return operands
}

func (c *simple) take(word string) (operands []int) {
	option := strings.HasPrefix(word, "-")
	if c.name == "" {
		if !option && !isKeyword(word) && !isPrefix(word) {
			c.name = word
		}
		return nil
	}
	c.option, c.operand = "", false
	switch {
	case word == "{" && !c.tests(), word == "]]" && c.name == "[[":
		*c = simple{own: c.own} // the body of a function, or the end
		return nil
	case c.tests() && compares(word):
		c.operand = true
		return c.before
	case option && word != "--":
		c.option, c.optioned = word, true
	case word != "--":
		c.args++
	}
	return nil
}
