package run

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stintgo/stint/cmd/stint/internal/template"
)

// shellsTable are the names of shells.
var shellsTable = []string{"sh", "ash", "bash", "dash", "fish", "ksh", "ksh93", "mksh", "yash", "zsh"}

// checkNestedShell refuses sh -c '… {} …': nothing is quoted in the words of a
// command, and that shell would run what it finds in the name of a file. In
// sh -c {} each input is a script, and meant to be.
func checkNestedShell(words []string, templates []template.Template) error {
	shell := filepath.Base(words[0])
	if !slices.Contains(shellsTable, shell) {
		return nil
	}
	reads := false // the next word that is no option is a script
	for i, word := range words[1:] {
		if strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "--") {
			reads = reads || strings.Contains(word, "c")
			continue
		}
		if !reads {
			continue
		}
		if name := templates[i+1].Input(); name != "" && name != word {
			return fmt.Errorf("%s is in the script of %s -c, %w: leave %s -c out, as stint runs a command of one word "+
				"in /bin/sh and quotes the input, or write \"$1\" in the script and %s %s behind it; the script is: %s",
				name, shell, template.ErrCode, shell, shell, name, word)
		}
		return nil
	}
	return nil
}
