package receiver_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stintgo/stint/transfer/receiver"
)

func TestHeaders(t *testing.T) {
	good := []string{"", "?1", "?0", "?1;a=b", "5", "5;x", "0"}
	for _, text := range good {
		_, isBool := receiver.ParseBoolean(text)
		_, isInt := receiver.ParseInteger(text)
		if text != "" && isBool == isInt {
			t.Errorf("%q is a boolean: %t, an integer: %t", text, isBool, isInt)
		}
	}
	for _, text := range []string{"1", "true", "?2", "-1", "1.5", "1e3", "+1", "0x1", "1234567890123456"} {
		if _, ok := receiver.ParseBoolean(text); ok {
			t.Errorf("%q is read as a boolean", text)
		}
		if _, ok := receiver.ParseInteger(text); ok && text != "1" {
			t.Errorf("%q is read as an integer", text)
		}
	}
	for _, text := range []string{"sha-256=:AAAA:", "sha-256=AAAA", "sha-256=::"} {
		if _, err := receiver.ParseDigest(text); err == nil {
			t.Errorf("%q is read as a digest", text)
		}
	}
	if sum, err := receiver.ParseDigest("sha-512=:AAAA:, md5=x"); sum != nil || err != nil {
		t.Errorf("other digests are read as %x, %v", sum, err)
	}
	for _, text := range []string{"final", "final;", "partial;", "Partial", "x"} {
		if _, _, err := receiver.ParseConcat(text); err == nil {
			t.Errorf("%q is read as a concatenation", text)
		}
	}
	for _, text := range []string{"a b c", ",", "a YQ==,a YQ==", "a %", "sha256 YQ=="} {
		if meta, err := receiver.ParseMetadata(text); err == nil {
			t.Errorf("%q is read as the metadata %v", text, meta)
		}
	}
	if _, err := receiver.ParseMetadata("a " + strings.Repeat("A", 20000)); err == nil {
		t.Error("metadata of 20,000 bytes is read")
	}
}

func FuzzMetadata(f *testing.F) {
	for _, seed := range []string{"filename YS5iaW4=,is_confidential", "", ",", "a b c", "part-of IA==", "sha256 \xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		meta, err := receiver.ParseMetadata(text)
		if err != nil {
			return
		}
		for key, value := range meta {
			if key == "" || !utf8.ValidString(key) || !utf8.ValidString(value) {
				t.Errorf("%q has the pair %q, %q", text, key, value)
			}
		}
	})
}

func FuzzHeaders(f *testing.F) {
	for _, seed := range []string{
		"sha1 AAAAAAAAAAAAAAAAAAAAAAAAAAA=", "crc32c AAAAAA==", "final;/files/a /files/b", "partial",
		"sha-256=:AAAA:", "?1", "12", "group 1 2",
		"0123456789abcdef 5 10",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if ofNothing, err := receiver.ParseChecksum(text); ofNothing && (err != nil || !strings.Contains(text, " ")) {
			t.Errorf("%q is the checksum of an empty body, error %v", text, err)
		}
		if partial, parts, err := receiver.ParseConcat(text); err == nil && partial && len(parts) > 0 {
			t.Errorf("%q is both partial and final", text)
		}
		if sum, err := receiver.ParseDigest(text); err == nil && sum != nil && len(sum) != 32 {
			t.Errorf("the digest %q has %d bytes", text, len(sum))
		}
		if n, ok := receiver.ParseInteger(text); ok && n < 0 {
			t.Errorf("%q is %d", text, n)
		}
		item, _, _ := strings.Cut(text, ";")
		if value, ok := receiver.ParseBoolean(text); ok && strings.Contains(item, "?1") != value {
			t.Errorf("%q is %t", text, value)
		}
		if at, err := receiver.ParsePlace(text); err == nil && receiver.PlaceIsBad(at) {
			t.Errorf("%q is the place %v", text, at)
		}
	})
}

func FuzzCleanName(f *testing.F) {
	long := strings.Repeat("x", 300)
	for _, seed := range []string{"a.txt", "../x", "\x00", "..", ". .a ", strings.Repeat("é", 200), long + ".gz"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name := receiver.CleanName(text)
		if len(name) > 240 || strings.ContainsAny(name, "/\\\x00\n\r") || strings.HasPrefix(name, ".") ||
			!utf8.ValidString(name) {
			t.Errorf("%q became %q", text, name)
		}
		if again := receiver.CleanName(name); again != name {
			t.Errorf("%q became %q, and then %q", text, name, again)
		}
	})
}

// FuzzJournal: whatever a journal has become, reading it ends at a whole line, and reading
// the whole lines again gives the same records.
func FuzzJournal(f *testing.F) {
	f.Add([]byte("00000000 {}\n"))
	f.Add([]byte("garbage"))
	f.Add(receiver.Line())
	f.Add(append(receiver.Line(), receiver.Line()[:20]...))
	f.Fuzz(func(t *testing.T, text []byte) {
		records, end, err := receiver.ReadJournal(bytes.NewReader(text))
		if err != nil || end > int64(len(text)) {
			t.Fatalf("%d records until %d of %d bytes, %v", len(records), end, len(text), err)
		}
		again, same, err := receiver.ReadJournal(bytes.NewReader(text[:end]))
		if err != nil || same != end || len(again) != len(records) {
			t.Fatalf("%d records until %d, then %d until %d, %v", len(records), end, len(again), same, err)
		}
	})
}

// TestPlain_DigestInASecondLine: a dictionary may be split into header lines (RFC 9651, section 3.2).
func TestPlain_DigestInASecondLine(t *testing.T) {
	s := open(t, receiver.Config{})
	for _, name := range []string{"Content-Digest", "Repr-Digest"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.url+"a", strings.NewReader("one"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Add(name, "unixsum=:AAAA:")
		req.Header.Add(name, digest([]byte("other")))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 460 {
			t.Errorf("%s in two lines, the second differs: status %d, want 460", name, resp.StatusCode)
		}
	}
	s.names()
}
