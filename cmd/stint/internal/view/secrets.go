package view

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/transfer"
)

// hideSecrets returns a task without the passwords that may be in the URLs of an upload: in its
// payload, and in the locations that its checkpoint and its result have.
func hideSecrets(t queue.Task) queue.Task {
	if t.Kind == string(transfer.Kind) {
		for _, value := range []*[]byte{&t.Payload, &t.Checkpoint, &t.Result} {
			*value = withoutPasswords(*value)
		}
	}
	return t
}

// withoutPasswords returns JSON with xxxxx in place of the passwords in its URLs. What is not JSON is
// hidden as a whole.
func withoutPasswords(text []byte) []byte {
	if len(text) == 0 {
		return text
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return []byte(`"hidden: not JSON"`)
	}
	if _, err := d.Token(); err != io.EOF {
		return []byte(`"hidden: not JSON"`)
	}
	changed := false
	v = mapped(v, func(s string) string {
		hidden := withoutPassword(s)
		changed = changed || hidden != s
		return hidden
	})
	if !changed {
		return text
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // what was decoded can be encoded
	return bytes.TrimSpace(out.Bytes())
}

// mapped returns a value of JSON with fn applied to its strings.
func mapped(v any, fn func(string) string) any {
	switch v := v.(type) {
	case string:
		return fn(v)
	case []any:
		for i := range v {
			v[i] = mapped(v[i], fn)
		}
	case map[string]any:
		for name := range v {
			v[name] = mapped(v[name], fn)
		}
	}
	return v
}

// withoutPassword returns a text, with xxxxx in place of the password if it is a URL that has one.
func withoutPassword(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || strings.ContainsAny(scheme, " /?#@") {
		return text
	}
	authority := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority = rest[:end]
	}
	at := strings.LastIndex(authority, "@")
	if at < 0 {
		return text
	}
	name, password, _ := strings.Cut(authority[:at], ":")
	if password == "" {
		return text
	}
	return scheme + "://" + name + ":xxxxx" + rest[at:]
}
