package receiver_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stintgo/stint/transfer/receiver"
)

// loseHalf makes the disk one that a loss of power has left without the second half of an
// upload's bytes. All journals become those of another boot. The receiver must be closed.
func (s *site) loseHalf(url string, from, to int) {
	s.tb.Helper()
	work := filepath.Join(s.dir, ".uploads")
	for _, name := range list(s.tb, work) {
		if strings.HasSuffix(name, ".log") {
			rewriteBoot(s.tb, filepath.Join(work, name))
		}
	}
	f, err := os.OpenFile(s.data(url), os.O_RDWR, 0)
	if err != nil {
		s.tb.Fatal(err)
	}
	defer f.Close()
	half := (to - from) / 2
	if _, err := f.WriteAt(make([]byte, to-from-half), int64(from+half)); err != nil {
		s.tb.Fatal(err)
	}
}

// data returns the name of an upload's data, or of the only data there is.
func (s *site) data(url string) string {
	s.tb.Helper()
	name := filepath.Join(s.dir, ".uploads", url[strings.LastIndexByte(url, '/')+1:])
	if _, err := os.Stat(name); err == nil {
		return name
	}
	logs, err := filepath.Glob(filepath.Join(s.dir, ".uploads", "*.log"))
	if err != nil || len(logs) != 1 {
		s.tb.Fatalf("no data of %s: the journals are %q, %v", url, logs, err)
	}
	return strings.TrimSuffix(logs[0], ".log")
}

// failing returns a configuration whose disk fails in one operation while on is true.
func failing(cfg receiver.Config, op string, on *atomic.Bool) receiver.Config {
	return failingAfter(cfg, 0, op, on)
}

// failingAfter is failing after n calls of the operation.
func failingAfter(cfg receiver.Config, n int64, op string, on *atomic.Bool) receiver.Config {
	var calls atomic.Int64
	return receiver.WithFault(cfg, func(is string, _ int) (int, error) {
		if is == op && on.Load() && calls.Add(1) > n {
			return 0, errors.New("broken")
		}
		return 0, nil
	})
}

// TestE4_PowerLossInConcatenation: a concatenation that was begun before a loss of power
// publishes nothing until the lost bytes of its parts have been sent again.
func TestE4_PowerLossInConcatenation(t *testing.T) {
	for _, c := range []struct {
		name   string
		placed bool
		op     string // which fails
		after  int64  // how many calls of it
		loses  int    // the number of a part
	}{
		{"first", false, "copy", 0, 0},
		{"other", false, "copy", 0, 2},
		{"placed", true, "write", 1, 1}, // the record of the concatenation is written, that of the name is not
		{"placed-and-named", true, "rename", 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var fails atomic.Bool
			s := open(t, failingAfter(receiver.Config{}, c.after, c.op, &fails))
			data := content(50, 300_000)
			var meta func(offset, length int) string
			if c.placed {
				meta = func(offset, _ int) string {
					return "part-of " + b64(fmt.Sprintf("group-0123456789abcdef %d %d", offset, len(data)))
				}
			}
			urls := s.parts(data, 3, meta)
			final := []string{"Upload-Concat", "final;" + strings.Join(urls, " "), "Upload-Metadata", filename("whole")}
			fails.Store(true)
			s.want(s.tus("POST", s.url, nil, final...), 500)
			s.Close()
			from := 0
			if c.placed {
				from = c.loses * 100_000
			}
			s.loseHalf(urls[c.loses], from, from+100_000)

			s = openIn(t, s.dir, receiver.Config{})
			s.want(s.tus("POST", s.url, nil, final...), 409)
			s.names()
			s.Close()
			s = openIn(t, s.dir, receiver.Config{})
			s.want(s.tus("POST", s.url, nil, final...), 409)
			if at := s.offset(urls[c.loses]); at != 0 {
				t.Errorf("the part that has lost bytes has the offset %d", at)
			}
			s.want(s.patch(urls[c.loses], 0, data[c.loses*100_000:(c.loses+1)*100_000]), 204)
			whole := s.want(s.tus("POST", s.url, nil, final...), 201).Header.Get("Location")
			s.file("whole", data)
			s.want(s.tus("HEAD", whole, nil), 200, "Upload-Offset", fmt.Sprint(len(data)))
			s.clean()
		})
	}
}
