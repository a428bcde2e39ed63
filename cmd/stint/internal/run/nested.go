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

// executesTable has programs that become the program named after their options, by exec.
var executesTable = map[string]bool{
	"chrt": true, "env": true, "ionice": true, "nice": true,
	"nohup": true, "setsid": true, "stdbuf": true, "taskset": true,
}

// Executes reports whether a program becomes the one named after its options, as env does.
func Executes(name string) bool { return executesTable[name] }

// runsTable has other programs that run the one named after their options, in some of them after
// a user, a file or a container.
var runsTable = map[string]bool{
	"busybox": true, "chroot": true, "docker": true, "doas": true, "flock": true, "nsenter": true, "podman": true,
	"prlimit": true, "runuser": true, "strace": true, "sudo": true, "time": true, "timeout": true, "toybox": true,
	"unshare": true,
}

// scriptsTable has programs that run a script in a shell with their option -c.
var scriptsTable = []string{"flock", "runuser", "su"}

// wraps reports whether a program runs the one named after its options.
func wraps(name string) bool { return Executes(name) || runsTable[name] }

// checkNestedShell refuses sh -c '… {} …', also behind a wrapper such as env: the words of a
// command are not quoted for a shell, so that shell would execute what is in a file's name. In
// sh -c {} each input is meant to be a script.
func checkNestedShell(words []string, templates []template.Template) error {
	for wraps(filepath.Base(words[0])) {
		inner := slices.IndexFunc(words[1:], func(word string) bool {
			name := filepath.Base(word)
			return !strings.Contains(word, "=") && (slices.Contains(shellsTable, name) || wraps(name))
		})
		if inner < 0 {
			break
		}
		words, templates = words[inner+1:], templates[inner+1:]
	}
	shell := filepath.Base(words[0])
	if !slices.Contains(shellsTable, shell) && !slices.Contains(scriptsTable, shell) {
		return nil
	}
	reads := false // the next word that is not an option is a script
	for i := 1; i < len(words); i++ {
		word := words[i]
		if strings.HasPrefix(word, "-") || strings.HasPrefix(word, "+") {
			if !strings.HasPrefix(word, "--") {
				reads = reads || word[0] == '-' && strings.Contains(word, "c")
				if strings.HasSuffix(word, "o") {
					i++ // the name of an option
				}
			}
			continue
		}
		if !reads {
			continue
		}
		if name := templates[i].Input(); name != "" && name != word {
			return fmt.Errorf("%s is in the script of %s -c, %w: leave %s -c out, since stint runs a command of one word "+
				"in /bin/sh and quotes the input, or write \"$1\" in the script and %s %s after it; the script is: %s",
				name, shell, template.ErrCode, shell, shell, name, word)
		}
		return nil
	}
	return nil
}
