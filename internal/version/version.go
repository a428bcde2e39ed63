// Package version returns the version of this module in the program.
package version

import (
	"cmp"
	"runtime/debug"
)

// linked is the version of a program that was built outside its repository, as packagers do:
//
//	go build -ldflags "-X github.com/stintgo/stint/internal/version.linked=v1.2.3" ./cmd/stint
var linked string //nolint:gochecknoglobals // the linker sets it

// Module returns the version of this module in the program: that of the linker if it has set
// one, and otherwise that of the go command, which is "(devel)" for a copy of the source. It
// returns "" if the program was built without the information.
func Module() string { return cmp.Or(linked, recorded()) }

// recorded returns the version that the go command has recorded.
func recorded() string {
	const module = "github.com/stintgo/stint"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == module {
			return m.Version
		}
	}
	return ""
}
