package isolate_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/isolate"
	"github.com/stintgo/stint/retry"
)

// FuzzReceive checks that a worker survives any bytes that a process writes to its
// descriptor 3, and that it returns an outcome only without an error.
func FuzzReceive(f *testing.F) {
	var sound bytes.Buffer
	report := queue.Reported{
		Progress: queue.Progress{Done: 1}, Checkpoint: []byte("x"), Saved: 1, Result: []byte(`{"a":1}`),
	}
	if err := isolate.Send(&sound, report, retry.Permanent(retry.After(time.Second, errors.New("boom")))); err != nil {
		f.Fatal(err)
	}
	f.Add(sound.Bytes())
	f.Add(sound.Bytes()[:sound.Len()-1])
	f.Add([]byte{})
	f.Add([]byte{0, 0, 0, 2, '{', '}'})
	f.Add([]byte{255, 255, 255, 255, '{', '}'})
	f.Add([]byte{0, 0, 0, 4, 'n', 'u', 'l', 'l'})
	f.Add([]byte("\x00\x00\x00\x2f" + `{"done":{"failed":true,"snooze_ns":-9000000000}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		reports, returned, err := isolate.Receive(bytes.NewReader(data))
		if err != nil {
			if returned != nil {
				t.Errorf("%v, with an outcome: %v", err, returned)
			}
			return
		}
		if frames := countFrames(data); reports == 0 || reports > frames {
			t.Errorf("%d reports of %d frames", reports, frames)
		}
		_ = retry.IsPermanent(returned)
	})
}

// countFrames counts the complete frames in data by their lengths.
func countFrames(data []byte) (n int) {
	for len(data) >= 4 {
		length := int(binary.BigEndian.Uint32(data))
		if data = data[4:]; length > len(data) {
			break
		}
		data = data[length:]
		n++
	}
	return n
}

func TestReceive_InvalidFrames(t *testing.T) {
	for text, says := range map[string]string{
		"":                             "EOF",
		"\x00\x00":                     "unexpected EOF",
		"\x00\x00\x00\x05{}":           "unexpected EOF",
		"\x7f\x00\x00\x00":             "invalid frame: it begins with the length 2130706432",
		"\x00\x00\x00\x02][":           "invalid frame: invalid character",
		"\x00\x00\x00\x02{}" + "hello": "invalid frame: it begins with the length 1751477356",
	} {
		if _, _, err := isolate.Receive(strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("%q: %v, want %s", text, err, says)
		}
	}
	broken := io.MultiReader(strings.NewReader("\x00\x00\x00\x09"), failing{})
	if _, _, err := isolate.Receive(broken); !errors.Is(err, errBroken) {
		t.Errorf("a pipe that fails: %v", err)
	}
}

var errBroken = errors.New("broken")

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errBroken }
