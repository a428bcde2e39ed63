package cli

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/stintgo/stint/cmd/stint/internal/serve"
)

// groupName matches the names that a group may have. The name is part of the name of a schema.
var groupName = regexp.MustCompile(`^[a-z0-9][a-z0-9_]{0,39}$`)

// checkGroup checks the name of a group.
func checkGroup(name string) error {
	if !groupName.MatchString(name) {
		return fmt.Errorf("group %.50q: a name has up to 40 characters of a-z, 0-9 and _, and does not begin with _", name)
	}
	return nil
}

// parseGroups parses the values of --group and --group-store. A URL may be env:VARIABLE.
func parseGroups(texts, stores []string, store string) (groups []serve.Group, err error) {
	var errs []error
	if len(texts)+len(stores) > 0 && store == "" {
		errs = append(errs, errors.New("--group needs --store: a directory has one leader"))
	}
	for _, text := range texts {
		name, queues, _ := strings.Cut(text, "=")
		g := serve.Group{Name: name, Queues: strings.Split(queues, ",")}
		switch err := checkGroup(name); {
		case err != nil:
			errs = append(errs, fmt.Errorf("--group %.100q: %w", text, err))
		case slices.Contains(g.Queues, ""):
			errs = append(errs, fmt.Errorf("--group %.100q: name its queues, as in mail=news,letters", text))
		case name == serve.DefaultGroup:
			errs = append(errs, fmt.Errorf("--group %.100q: %s is the name of the group of all other queues", text, name))
		}
		groups = append(groups, g)
	}
	for _, text := range stores {
		name, url, _ := strings.Cut(text, "=")
		if variable, ok := strings.CutPrefix(url, "env:"); ok {
			if url = os.Getenv(variable); url == "" {
				errs = append(errs, fmt.Errorf("--group-store %.50q: the environment variable %.50q has no URL", name, variable))
				continue
			}
		}
		i := slices.IndexFunc(groups, func(g serve.Group) bool { return g.Name == name })
		if i < 0 || !strings.Contains(url, "://") { // the URL may have a password
			errs = append(errs, fmt.Errorf("--group-store %.50q: give NAME=URL or NAME=env:VARIABLE, NAME as in --group", name))
			continue
		}
		groups[i].Store = url
	}
	return groups, errors.Join(errs...)
}
