// Package shellquote writes words so that a POSIX shell reads them back
// unchanged.
package shellquote

import "strings"

// Quote returns word as it must be written for a POSIX shell to read exactly word:
// unchanged if no character is special to a shell, in single quotes otherwise.
func Quote(word string) string {
	if safe(word) {
		return word
	}
	return string(Append(nil, word))
}

// Append appends Quote(word) to dst.
func Append(dst []byte, word string) []byte {
	if safe(word) {
		return append(dst, word...)
	}
	return AppendQuoted(dst, word)
}

// AppendQuoted appends word in single quotes, even if it needs none.
func AppendQuoted(dst []byte, word string) []byte {
	dst = append(dst, '\'')
	for {
		i := strings.IndexByte(word, '\'')
		if i < 0 {
			break
		}
		dst = append(dst, word[:i]...)
		// A single quote cannot be written inside single quotes: close them, write it
		// escaped, open them again.
		dst = append(dst, `'\''`...)
		word = word[i+1:]
	}
	dst = append(dst, word...)
	return append(dst, '\'')
}

// Join quotes words and puts a space between them: the result can be pasted into a shell.
func Join(words []string) string {
	var dst []byte
	for i, word := range words {
		if i > 0 {
			dst = append(dst, ' ')
		}
		dst = Append(dst, word)
	}
	return string(dst)
}

// safe lists the characters that need no quotes and not those that do: a forgotten
// character then costs two quotes and is not a vulnerability. Bytes above ASCII are
// quoted, because the locale decides which of them are blanks.
func safe(word string) bool {
	if word == "" {
		return false
	}
	for i := range len(word) {
		if !safeByte(word[i]) {
			return false
		}
	}
	// zsh expands a leading equals sign to a command's path.
	return word[0] != '='
}

func safeByte(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return strings.IndexByte("_@%+=:,./-", c) >= 0
}
