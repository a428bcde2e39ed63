package queue_test

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
)

// The example of RFC 9562, appendix A.6.
func TestC1_IDIsAVersion7UUID(t *testing.T) {
	at := time.Date(2022, 2, 22, 14, 22, 22, 0, time.FixedZone("", -5*3600))
	ids := queue.IDs{Random: func() uint64 { return 0x18c4dc0c0c07398f << 2 }}
	id := ids.New(at)
	if got, want := id.String(), "017f22e2-79b0-7000-98c4-dc0c0c07398f"; got != want {
		t.Errorf("ID %s, want %s", got, want)
	}
	if !id.Time().Equal(at) {
		t.Errorf("its time is %s, want %s", id.Time(), at)
	}
}

func TestC1_IDsGrow(t *testing.T) {
	var ids queue.IDs
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	last := ids.New(now)
	for i := range 20_000 {
		switch {
		case i < 10_000: // the fraction has 4096 values: it carries into the milliseconds
		case i < 15_000:
			now = now.Add(137 * time.Nanosecond)
		default:
			now = now.Add(-time.Second)
		}
		id := ids.New(now)
		if bytes.Compare(last[:], id[:]) >= 0 {
			t.Fatalf("ID %d, %s, is not larger than %s", i, id, last)
		}
		if id[6]>>4 != 7 || id[8]>>6 != 2 {
			t.Fatalf("%s has not the version and variant of RFC 9562", id)
		}
		last = id
	}
}

func TestC1_IDsAreUnique(t *testing.T) {
	var (
		ids  queue.IDs
		mu   sync.Mutex
		seen = map[queue.ID]bool{}
		all  sync.WaitGroup
		now  = time.Now()
	)
	for range 8 {
		all.Go(func() {
			for range 1000 {
				id := ids.New(now)
				mu.Lock()
				seen[id] = true
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(seen) != 8000 {
		t.Errorf("%d different IDs of 8000", len(seen))
	}
}

func TestC1_ParseID(t *testing.T) {
	const text = "01890a5d-ac96-774b-bcce-b302099a8057"
	for _, good := range []string{text, strings.ToUpper(text)} {
		id, err := queue.ParseID(good)
		if err != nil || id.String() != text {
			t.Errorf("%s: %s, error %v", good, id, err)
		}
	}
	for _, bad := range []string{
		"", "1", text[1:], text + "0", strings.Replace(text, "-", "0", 1), strings.Replace(text, "a", "g", 1),
		"{" + text[1:35] + "}", strings.Replace(text, "5d-", "-5d", 1),
	} {
		if id, err := queue.ParseID(bad); !errors.Is(err, queue.ErrInvalid) || !id.IsZero() {
			t.Errorf("%q: %s, error %v", bad, id, err)
		}
	}
}

func FuzzParseID(f *testing.F) {
	f.Add("01890a5d-ac96-774b-bcce-b302099a8057")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := queue.ParseID(text)
		if err == nil && !strings.EqualFold(id.String(), text) {
			t.Errorf("%q became %s", text, id)
		}
	})
}
