package receiver_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/transfer/receiver"
)

// modelUpload is what the model knows of an upload: the bytes that the client has, how
// many the receiver confirmed, and what becomes of it.
type modelUpload struct {
	data   []byte
	offset int
	name   string // of the finished file
	draft  bool   // a request has to finish it
	known  bool   // the length was given
}

// model runs random operations against a receiver and against a map.
type model struct {
	*site
	t       *testing.T
	rnd     *rand.Rand
	uploads map[string]*modelUpload // by path
	files   map[string][]byte
	made    int
}

func TestModel(t *testing.T) {
	m := &model{
		site: open(t, receiver.Config{}), t: t, rnd: seeded.Rand(t),
		uploads: map[string]*modelUpload{}, files: map[string][]byte{},
	}
	operations := []struct {
		weight int
		run    func()
	}{
		{4, m.create},
		{3, m.createDraft},
		{20, m.append},
		{3, m.appendWrongOffset},
		{3, m.appendWrongSum},
		{3, m.appendTooLong},
		{4, m.head},
		{1, m.cancel},
		{1, m.reopen},
	}
	var wheel []func()
	for _, op := range operations {
		for range op.weight {
			wheel = append(wheel, op.run)
		}
	}
	for range 800 {
		wheel[m.rnd.IntN(len(wheel))]()
		m.check()
	}
	for name, data := range m.files {
		m.file(name, data)
	}
	t.Logf("%d uploads, %d finished", m.made, len(m.files))
}

// pick returns a random unfinished upload, or creates one.
func (m *model) pick() (string, *modelUpload) {
	paths := slices.Sorted(maps.Keys(m.uploads))
	if len(paths) == 0 {
		m.create()
		return m.pick()
	}
	path := paths[m.rnd.IntN(len(paths))]
	return path, m.uploads[path]
}

func (m *model) plan() *modelUpload {
	m.made++
	size := m.rnd.IntN(3000)
	if m.rnd.IntN(5) == 0 {
		size *= 1000
	}
	return &modelUpload{
		data: content(uint64(m.made), size), name: fmt.Sprintf("file-%d", m.made), known: m.rnd.IntN(3) > 0,
	}
}

func (m *model) create() {
	u := m.plan()
	sum := sha256.Sum256(u.data)
	h := []string{"Upload-Metadata", filename(u.name) + ",sha256 " + b64(hex.EncodeToString(sum[:]))}
	if u.known {
		h = append(h, "Upload-Length", fmt.Sprint(len(u.data)))
	} else {
		h = append(h, "Upload-Defer-Length", "1")
	}
	path := m.want(m.tus("POST", m.url, nil, h...), 201).Header.Get("Location")
	m.uploads[path] = u
	m.progress(path, u, u.known)
}

func (m *model) createDraft() {
	u := m.plan()
	u.draft, u.known = true, false
	n := m.rnd.IntN(len(u.data) + 1)
	path := m.want(m.site.draft("8", "PUT", m.url+u.name, strings.NewReader(string(u.data[:n])), "Upload-Complete", "?0"),
		201).Header.Get("Location")
	u.offset = n
	m.uploads[path] = u
}

// append sends bytes that are right, some of them with a checksum.
func (m *model) append() {
	path, u := m.pick()
	n := u.offset + m.rnd.IntN(len(u.data)-u.offset+1)
	if m.rnd.IntN(2) == 0 {
		n = len(u.data)
	}
	body := u.data[u.offset:n]
	if u.draft {
		complete := "?0"
		if n == len(u.data) && m.rnd.IntN(3) > 0 {
			complete = "?1"
		}
		m.want(m.site.append("8", path, u.offset, body, complete), map[string]int{"?0": 204, "?1": 200}[complete])
		u.offset = n
		m.progress(path, u, complete == "?1")
		return
	}
	var h []string
	if m.rnd.IntN(2) == 0 {
		h = append(h, "Upload-Checksum", checksum("sha1", body))
	}
	if !u.known && m.rnd.IntN(2) == 0 {
		h, u.known = append(h, "Upload-Length", fmt.Sprint(len(u.data))), true
	}
	m.want(m.patch(path, u.offset, body, h...), 204, "Upload-Offset", fmt.Sprint(n))
	u.offset = n
	m.progress(path, u, u.known)
}

// progress moves an upload that is complete to the files.
func (m *model) progress(path string, u *modelUpload, ends bool) {
	if ends && u.offset == len(u.data) {
		m.files[u.name] = u.data
		m.file(u.name, u.data)
		delete(m.uploads, path)
	}
}

func (m *model) appendWrongOffset() {
	path, u := m.pick()
	m.want(m.patch(path, u.offset+1+m.rnd.IntN(9), u.data), 409, "Upload-Offset", fmt.Sprint(u.offset))
}

func (m *model) appendWrongSum() {
	path, u := m.pick()
	if u.offset < len(u.data) {
		m.want(m.patch(path, u.offset, u.data[u.offset:], "Upload-Checksum", checksum("sha1", []byte("other"))), 460)
	}
}

// appendTooLong sends more than the length, with and without a length of the body. What
// fits may be kept, but not all of it.
func (m *model) appendTooLong() {
	path, u := m.pick()
	if !u.known {
		return
	}
	var body io.Reader = strings.NewReader(string(u.data[u.offset:]) + "x")
	if m.rnd.IntN(2) == 0 {
		body = struct{ io.Reader }{body}
	}
	m.want(m.tus("PATCH", path, body, "Upload-Offset", fmt.Sprint(u.offset),
		"Content-Type", "application/offset+octet-stream"), 413)
	at := m.offset(path)
	if at < u.offset || at >= len(u.data) {
		m.t.Fatalf("a body that is too long moved the offset from %d to %d of %d", u.offset, at, len(u.data))
	}
	u.offset = at
}

func (m *model) head() {
	path, u := m.pick()
	if got := m.offset(path); got != u.offset {
		m.t.Fatalf("the offset of %s is %d, want %d", u.name, got, u.offset)
	}
}

func (m *model) cancel() {
	path, _ := m.pick()
	m.want(m.tus("DELETE", path, nil), 204)
	delete(m.uploads, path)
}

func (m *model) reopen() {
	m.Close()
	m.site = openIn(m.t, m.dir, receiver.Config{})
}

// check compares the directory with the model.
func (m *model) check() {
	m.t.Helper()
	m.names(slices.Collect(maps.Keys(m.files))...)
	reserved := int64(0)
	for _, u := range m.uploads {
		if u.known {
			reserved += int64(len(u.data))
		} else {
			reserved += int64(u.offset)
		}
	}
	if got := m.Reserved(); got < reserved {
		m.t.Fatalf("%d bytes count for the quota, want %d", got, reserved)
	}
}
