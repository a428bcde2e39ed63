package browsertest_test

import (
	"bytes"
	"image/png"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stintgo/stint/transfer/browser"
)

// pictureFile names the variable with the path to which the picture of docs/browser.md is written:
//
//	STINT_PICTURE=../docs/browser.png go test -run Picture
const pictureFile = "STINT_PICTURE"

// pictureMax is how many bytes the picture may have.
const pictureMax = 120 << 10

// The pictures show every state, in wide and narrow pages, light and dark. They are taken always, and written if the
// variable asks for it: docs/browser.png, and others beside it with the suffixes below, for looking at.
func TestPicture(t *testing.T) {
	s := serve(t, fast, browser.Config{})
	s.fault = func(r *http.Request) int {
		if r.Method == http.MethodPost && r.Header.Get("Upload-Length") == "1234567" {
			return http.StatusForbidden
		}
		return 0
	}
	s.refusal = "files of this kind are not accepted"
	for _, picture := range []struct {
		name  string
		width int
		dark  bool
	}{{"", 1000, false}, {"-dark", 1000, true}, {"-narrow", 375, false}, {"-narrow-dark", 375, true}} {
		s.rate.SetRate(fast)
		b := s.open(picture.width)
		b.refusals = true
		b.dark(picture.dark)
		b.do(`localStorage.clear()`)
		b.add(s.file("holiday photos.zip", 18*megabyte), s.file("database.dump", 1234567))
		b.is("holiday photos.zip", "succeeded")
		b.is("database.dump", "error")
		s.rate.SetRate(16 * megabyte)
		b.add(s.file("interview.wav", 90*megabyte), s.file("film.mkv", 120*megabyte), s.file("backup.tar", 110*megabyte),
			s.file("report 2026.pdf", 3*megabyte), s.file("old.iso", 8*megabyte))
		b.press("old.iso", "cancel")
		b.all(3, "running")
		b.await("a chunk of each", `[...document.querySelectorAll("#list > li[data-state=running] .facts")]
			.every((f) => !f.textContent.includes(" 0 of"))`)
		b.press("backup.tar", "pause")
		b.is("report 2026.pdf", "running")
		image := compress(t, value(b, chromedp.FullScreenshot(100)))
		if path := os.Getenv(pictureFile); path != "" {
			write(t, strings.TrimSuffix(path, ".png")+picture.name+".png", image)
		}
		b.do(`for (const b of document.querySelectorAll("[data-order=cancel]:not([hidden])")) { b.click() }`)
		b.await("the end of all", `document.querySelectorAll("#list > li[data-state=running]").length === 0`)
	}
}

func write(t *testing.T, path string, image []byte) {
	t.Helper()
	if len(image) > pictureMax {
		t.Errorf("%s: the picture has %d bytes, more than %d", path, len(image), pictureMax)
	}
	if err := os.WriteFile(path, image, 0o644); err != nil { //nolint:gosec // documents are read by everybody
		t.Fatal(err)
	}
}

// compress encodes a PNG in fewer bytes than Chromium does.
func compress(t *testing.T, encoded []byte) []byte {
	t.Helper()
	image, err := png.Decode(bytes.NewReader(encoded))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, image); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
