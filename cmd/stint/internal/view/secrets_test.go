package view_test

import (
	"strings"
	"testing"

	"github.com/stintgo/stint/cmd/stint/internal/view"
)

// Passwords of URLs are hidden however the JSON is written, and nothing else is changed.
func TestC4_PasswordsAreHidden(t *testing.T) {
	for text, want := range map[string]string{
		`{"to":"http://me:sec&ret@host/f"}`:                 `{"to":"http://me:xxxxx@host/f"}`,
		`{"to":"http:\/\/me:s\u0065cret@host\/f","n":1.50}`: `{"n":1.50,"to":"http://me:xxxxx@host/f"}`,
		`{"lanes":"x","endpoint":"https://me:a@b@host"}`:    `{"endpoint":"https://me:xxxxx@host","lanes":"x"}`,
		`{"urls":["http://me:secret@host/1?a=b"]}`:          `{"urls":["http://me:xxxxx@host/1?a=b"]}`,
		`{"to":"http://host:80?mail=a@b"}`:                  `{"to":"http://host:80?mail=a@b"}`,
		`{ "to" : "http://me@host/" }`:                      `{ "to" : "http://me@host/" }`,
		`{"path":"/a:b@c"}`:                                 `{"path":"/a:b@c"}`,
		`http://me:secret@host/`:                            `"hidden: not JSON"`,
		`{} http://me:secret@host/`:                         `"hidden: not JSON"`,
		"":                                                  "",
	} {
		if got := view.WithoutPasswords(text); got != want || strings.Contains(got, "secret") {
			t.Errorf("%s is shown as %s, want %s", text, got, want)
		}
	}
}
