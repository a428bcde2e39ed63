package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stintgo/stint/cmd/stint/internal/shellquote"
)

// warnOwnFlags warns if a word after the command's name is a flag of cmd: the command
// gets it, which may not be intended. A "--" before the command avoids the warning.
func warnOwnFlags(w io.Writer, cmd *cobra.Command, words []string) {
	if len(words) < 2 || cmd.ArgsLenAtDash() == 0 {
		return
	}
	flag := ownFlag(cmd, words[1:])
	if flag == nil {
		return
	}
	name, _, _ := strings.Cut(flag[0], "=")
	path, program := cmd.CommandPath(), shellquote.Quote(words[0])
	printTo(w, "stint: %s is passed to %s, since flags of stint must precede the command; if it is for stint, write "+
		"%s … %s -- %s …; if it is for %s, write %s … -- %s …\n",
		name, program, path, shellquote.Join(flag), program, program, path, program)
}

// ownFlag returns the first flag of cmd among the words of a command, with its value if
// that is the next word. Words after a "--" are not flags.
func ownFlag(cmd *cobra.Command, words []string) []string {
	for i, word := range words {
		name, long := strings.CutPrefix(word, "--")
		if long && name == "" {
			return nil
		}
		name, _, hasValue := strings.Cut(name, "=")
		own := cmd.Flags().Lookup(name)
		switch {
		case !long || own == nil || own.Hidden || name == "help":
		case hasValue || own.NoOptDefVal != "" || i+1 == len(words):
			return words[i : i+1]
		default:
			return words[i : i+2]
		}
	}
	return nil
}
