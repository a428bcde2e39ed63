package view

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/transfer"
)

// hideSecrets returns a task without the password that may be in the URL of an upload: in its
// payload, and in the locations that its checkpoint and its result have.
func hideSecrets(t queue.Task) queue.Task {
	var u transfer.Upload
	if t.Kind != string(transfer.Kind) || json.Unmarshal(t.Payload, &u) != nil {
		return t
	}
	_, rest, _ := strings.Cut(u.To, "://")
	given, _, _ := strings.Cut(rest, "/")
	end := strings.LastIndex(given, "@")
	if end < 0 {
		return t
	}
	forms := []string{given[:end]}
	if at, err := url.Parse(u.To); err == nil && at.User != nil {
		forms = append(forms, at.User.String()) // as in the URLs that are made of it
	}
	for _, form := range forms {
		name, password, _ := strings.Cut(form, ":")
		if password == "" {
			continue
		}
		old, hidden := inJSON("//"+form+"@"), inJSON("//"+name+":xxxxx@")
		for _, value := range []*[]byte{&t.Payload, &t.Checkpoint, &t.Result} {
			*value = bytes.ReplaceAll(*value, old, hidden)
		}
	}
	return t
}

// inJSON returns text as it is within a string of JSON.
func inJSON(text string) []byte {
	quoted, _ := json.Marshal(text) // has no error
	return quoted[1 : len(quoted)-1]
}
