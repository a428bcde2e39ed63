package browsertest_test

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"net/http"
	"os"
	"slices"
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
	b := s.open(1000)
	b.refusals = true
	b.add(s.file("holiday photos.zip", 18*megabyte), s.file("database.dump", 1234567))
	b.is("holiday photos.zip", "succeeded")
	b.is("database.dump", "error")
	s.rate.SetRate(16 * megabyte)
	b.add(s.file("interview.wav", 190*megabyte), s.file("film.mkv", 220*megabyte), s.file("backup.tar", 210*megabyte),
		s.file("report 2026.pdf", 48*megabyte), s.file("photos.zip", 130*megabyte), s.file("old.iso", 8*megabyte))
	b.press("old.iso", "cancel")
	b.await("a chunk of each", `[...document.querySelectorAll("#list > li[data-state=running] .facts")]
		.filter((f) => /\s[1-9]\d*\sof\s\d+\schunks/.test(f.textContent)).length === 3`)
	s.rate.SetRate(megabyte) // no file ends while the pictures are taken
	b.press("backup.tar", "pause")
	b.is("report 2026.pdf", "running")
	for _, picture := range []struct {
		suffix string
		width  int64
		dark   bool
	}{{"", 1000, false}, {"-dark", 1000, true}, {"-narrow", 375, false}, {"-narrow-dark", 375, true}} {
		b.dark(picture.dark)
		b.run(chromedp.EmulateViewport(picture.width, 800))
		screenshot := value(b, chromedp.FullScreenshot(100))
		if path := os.Getenv(pictureFile); path != "" {
			write(t, strings.TrimSuffix(path, ".png")+picture.suffix+".png", compress(t, screenshot))
		}
	}
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if len(content) > pictureMax {
		t.Errorf("%s: the picture has %d bytes, more than %d", path, len(content), pictureMax)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil { //nolint:gosec // documents are read by everybody
		t.Fatal(err)
	}
}

// compress encodes a PNG with the 256 most frequent of its colours, in a third of the bytes.
func compress(t *testing.T, encoded []byte) []byte {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(encoded))
	if err != nil {
		t.Fatal(err)
	}
	frequency := map[color.RGBA]int{}
	bounds := full.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			frequency[color.RGBAModel.Convert(full.At(x, y)).(color.RGBA)]++ //nolint:forcetypeassert // it is the model's
		}
	}
	colours := slices.SortedFunc(maps.Keys(frequency), func(a, b color.RGBA) int { return frequency[b] - frequency[a] })
	var palette color.Palette
	for _, c := range colours[:min(256, len(colours))] {
		palette = append(palette, c)
	}
	reduced := image.NewPaletted(bounds, palette)
	draw.Draw(reduced, bounds, full, bounds.Min, draw.Src)
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, reduced); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
