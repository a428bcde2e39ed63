package receiver

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	idLen = 32 // hexadecimal digits of 128 bits

	// nameMax is the longest name of a finished file in bytes. File systems allow 255; the
	// rest is for the suffix of names that are taken.
	nameMax = 240
	// extensionMax is the longest extension that is kept when a name is cut.
	extensionMax = 20
)

// newID returns 128 random bits: knowing an ID is what gives access to an upload.
func newID() string {
	var b [idLen / 2]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// isID reports whether text has the form of an ID.
func isID(text string) bool {
	if len(text) != idLen {
		return false
	}
	for _, c := range []byte(text) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// cleanName returns a file name for what a client calls a file: the last element of a
// path of any system, without control characters and invalid UTF-8, not hidden, and cut
// to nameMax. It returns "" if nothing is left.
func cleanName(name string) string {
	name = strings.ToValidUTF8(name, "_")
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || unicode.Is(unicode.Cf, c) {
			return -1
		}
		return c
	}, name)
	name = strings.TrimLeftFunc(name, func(c rune) bool { return c == '.' || unicode.IsSpace(c) })
	name = strings.TrimSpace(name)
	if len(name) <= nameMax {
		return name
	}
	ext := path.Ext(name)
	if len(ext) > extensionMax {
		ext = ""
	}
	end := nameMax - len(ext)
	for !utf8.RuneStart(name[end]) {
		end--
	}
	return strings.TrimSpace(name[:end]) + ext
}

// numbered returns the nth choice for a file's name: name, name-2 and so on, before the
// extension.
func numbered(name string, n int) string {
	if n == 1 {
		return name
	}
	ext := path.Ext(name)
	return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), n, ext)
}
