package main

import (
	_ "embed"
	"maps"
	"strings"

	"github.com/stintgo/stint/bench/js"
)

//go:embed go.mod
var goMod string

// peerVersions are the packages that Stint is measured against, with the
// versions that go.mod and package.json pin. Nowhere else are they stated.
func peerVersions() (map[string]string, error) {
	versions, err := js.Versions()
	if err != nil {
		return nil, err
	}
	maps.Copy(versions, directModules(goMod))
	return versions, nil
}

// directModules reads what a go.mod requires for its own sake. Such a line is
// a path and a version; those of indirect modules have a comment, and Stint
// itself has a version of zeros.
func directModules(text string) map[string]string {
	versions := map[string]string{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 2 && strings.HasPrefix(words[1], "v") && words[1] != "v0.0.0" {
			versions[words[0]] = words[1]
		}
	}
	return versions
}
