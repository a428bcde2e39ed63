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

// scriptsTable has programs that run the script of their option -c in a shell. The number is how many operands,
// a file or a user, may precede the option.
var scriptsTable = map[string]int{"flock": 1, "runuser": 1, "su": 1}

// scriptOf returns the index of the script that a program of scriptsTable runs, or -1.
func scriptOf(words []string) int {
	operands := 0
	for i := 1; i+1 < len(words) && operands <= scriptsTable[filepath.Base(words[0])]; i++ {
		switch words[i] {
		case "-c", "--command":
			return i + 1
		case "-w", "--timeout", "-E", "--conflict-exit-code", "-s", "--shell", "-g", "--group":
			i++ // its value
		default:
			if !strings.HasPrefix(words[i], "-") {
				operands++
			}
		}
	}
	return -1
}

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
	if _, ok := scriptsTable[shell]; ok {
		if i := scriptOf(words); i > 0 {
			return checkScript(shell, words[i], templates[i],
				"use a form without -c, as in flock FILE COMMAND or runuser -u USER -- COMMAND")
		}
		return nil
	}
	if !slices.Contains(shellsTable, shell) {
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
		return checkScript(shell, word, templates[i], fmt.Sprintf("leave %s -c out, since stint runs a command of one "+
			"word in /bin/sh and quotes the input, or write \"$1\" in the script and %s %s after it",
			shell, shell, templates[i].Input()))
	}
	return nil
}

// checkScript refuses a script with an input in it, unless the input is the script.
func checkScript(program, script string, t template.Template, remedy string) error {
	if name := t.Input(); name != "" && name != script {
		return fmt.Errorf("%s is in the script of %s -c, %w: %s; the script is: %s",
			name, program, template.ErrCode, remedy, script)
	}
	return nil
}
