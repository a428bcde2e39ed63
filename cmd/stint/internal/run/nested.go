package run

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stintgo/stint/cmd/stint/internal/template"
)

// shellsTable has the names of shells.
var shellsTable = []string{"sh", "ash", "bash", "dash", "fish", "ksh", "ksh93", "mksh", "yash", "zsh"}

// checkNestedShell refuses sh -c '… {} …': the words of a command are not quoted for a
// shell, so that shell would execute what is in a file's name. In sh -c {} each input is
// meant to be a script.
func checkNestedShell(words []string, templates []template.Template) error {
	shell := filepath.Base(words[0])
	if !slices.Contains(shellsTable, shell) {
		return nil
	}
	reads := false // the next word that is not an option is a script
	for i, word := range words[1:] {
		if strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--") {
			reads = reads || strings.Contains(word, "c")
			continue
		}
		if !reads {
			continue
		}
		if name := templates[i+1].Input(); name != "" && name != word {
			return fmt.Errorf("%s is in the script of %s -c, %w: leave %s -c out, since stint runs a command of one word "+
				"in /bin/sh and quotes the input, or write \"$1\" in the script and %s %s after it; the script is: %s",
				name, shell, template.ErrCode, shell, shell, name, word)
		}
		return nil
	}
	return nil
}
