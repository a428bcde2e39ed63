package browsertest_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stintgo/stint/transfer/browser"
)

// Rates in bytes per second: one that bounds nothing, and one at which no file of a test ends.
const (
	fast  = 10e9
	still = kilobyte
)

// A file of 200 MB is paused, continued after a reload with the same file, and arrives whole. No more is sent
// than the file and what was under way of one chunk.
func TestE4_ReloadAndResumeInBrowser(t *testing.T) {
	const size = 200 * megabyte
	s := serve(t, 20*megabyte, browser.Config{})
	path := s.file("film.bin", size)
	b := s.open(1280)
	b.add(path)
	s.await("20 MB", func() bool { return s.bytes > 20*megabyte })
	s.rate.SetRate(still)
	b.press("film.bin", "pause")
	b.is("film.bin", "paused")
	s.rate.SetRate(fast) // so that the receiver reads what is in the buffers of the connection
	s.await("the end of the requests", func() bool { return s.running == 0 })
	before := seen(s, func() int64 { return s.bytes })
	if before > size/2 {
		t.Fatalf("%d bytes were sent before the pause; too many to test the rest", before)
	}

	b.run(chromedp.Reload())
	b.is("film.bin", "paused")
	if got := b.text("film.bin", ".state"); got != "paused: choose the file again" {
		t.Errorf("after the reload the state is %q", got)
	}
	if got := b.text("film.bin", ".facts"); strings.HasPrefix(got, "0 B") {
		t.Errorf("after the reload the progress is lost: %q", got)
	}
	other := filepath.Join(t.TempDir(), "film.bin")
	if err := os.WriteFile(other, []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.chooseAgain("film.bin", other)
	b.await("the refusal of another file",
		rowOf("film.bin")+`.querySelector(".message").textContent.includes("has 7 bytes")`)
	b.is("film.bin", "paused")

	b.chooseAgain("film.bin", path)
	b.is("film.bin", "succeeded")
	s.received(path)
	if got := seen(s, func() int64 { return s.bytes }); got > size+chunk {
		t.Errorf("%d bytes were sent of a file of %d; want no more than one chunk again", got, size)
	}
	if n := s.methods(http.MethodPost); n != 1 {
		t.Errorf("%d uploads were created, want 1", n)
	}

	// What is finished is not sent again, neither in this page nor after a reload.
	sent := seen(s, func() int64 { return s.bytes })
	b.add(path)
	b.await("the notice", `document.querySelector("#notice").textContent === "film.bin has been sent already."`)
	b.run(chromedp.Reload())
	b.await("an empty list", `document.querySelector("#summary").textContent === "No files yet."`)
	b.add(path)
	b.is("film.bin", "succeeded")
	if again := seen(s, func() int64 { return s.bytes }) - sent; again != 0 {
		t.Errorf("%d bytes of a finished file were sent again", again)
	}
	s.received(path)
}

// Five files, three at once: one is cancelled while it waits, one while it runs, and all are paused and resumed.
// Slots pass on, and the server keeps nothing of cancelled files.
func TestE2_PauseAllAndCancelInBrowser(t *testing.T) {
	s := serve(t, still, browser.Config{})
	b := s.open(1280)
	var paths []string
	for i := range 5 {
		paths = append(paths, s.file(fmt.Sprintf("part%d.bin", i), 20*megabyte+i))
	}
	b.add(paths...)
	b.all(3, "running")
	b.all(2, "waiting")
	s.await("three requests", func() bool { return s.running == 3 })

	b.press("part3.bin", "cancel")
	b.is("part3.bin", "cancelled")
	b.press("part1.bin", "cancel")
	b.is("part1.bin", "cancelled")
	b.is("part4.bin", "running") // the slot has passed on
	s.await("the removal", func() bool { return len(s.unfinished()) == 3 })

	b.click("#pause-all")
	b.all(3, "paused")
	s.rate.SetRate(fast) // so that the receiver reads what is in the buffers of the connections
	s.await("the end of the requests", func() bool { return s.running == 0 })
	before := s.methods(http.MethodPatch)
	s.rate.SetRate(still)
	b.click("#resume-all")
	b.all(3, "running")
	s.await("three requests", func() bool { return s.running == 3 })
	if n := s.methods(http.MethodPatch) - before; n != 3 {
		t.Errorf("%d requests were sent after the pause, want 3", n)
	}
	b.press("part0.bin", "pause")
	b.is("part0.bin", "paused")
	b.press("part0.bin", "resume")
	s.rate.SetRate(fast)
	b.all(3, "succeeded")
	s.received(paths[0], paths[2], paths[4])
	if most := seen(s, func() int { return s.most }); most != 3 {
		t.Errorf("%d requests were running at once, want 3", most)
	}

	// A cancelled one starts again, and ended ones leave the list.
	b.press("part3.bin", "retry")
	b.is("part3.bin", "succeeded")
	b.click("#clear")
	b.await("an empty list", `document.querySelectorAll("#list > li").length === 0`)
	s.received(paths[0], paths[2], paths[3], paths[4])
}

// A chunk that fails is sent four times, then the file is in error, and a retry continues it.
func TestE2_RetriesInBrowser(t *testing.T) {
	s := serve(t, fast, browser.Config{})
	failing, failed := true, 0
	s.fault = func(r *http.Request) int {
		// The second chunk of the large file.
		if failing && r.Method == http.MethodPatch && r.Header.Get("Upload-Offset") != "0" {
			failed++
			return http.StatusServiceUnavailable
		}
		return 0
	}
	b := s.open(1280)
	b.refusals = true
	large, small := s.file("large.bin", chunk+1000), s.file("small.bin", 1000)
	b.slots(1)
	b.add(large, small)
	b.is("small.bin", "succeeded") // it has the slot while large.bin waits to be tried again
	b.is("large.bin", "error")
	if n := seen(s, func() int { return failed }); n != 4 {
		t.Errorf("the chunk was sent %d times, want once and three times again", n)
	}
	if got := b.text("large.bin", ".message"); got != "The server answers 503: refused by the test" {
		t.Errorf("the message is %q", got)
	}
	if !eval[bool](b, rowOf("large.bin")+`.classList.contains("failed")`) {
		t.Error("the bar does not show the chunk that has failed")
	}
	seen(s, func() bool { failing = false; return true })
	b.press("large.bin", "retry")
	b.is("large.bin", "succeeded")
	s.received(large, small)
	if got := seen(s, func() int64 { return s.bytes }); got != chunk+2000 {
		t.Errorf("%d bytes were received, want %d: the first chunk must not be sent again", got, chunk+2000)
	}
}

// With one slot, files start in the order of their priorities.
func TestE5_PrioritiesInBrowser(t *testing.T) {
	s := serve(t, still, browser.Config{})
	var order []string
	s.fault = func(r *http.Request) int {
		if r.Method == http.MethodPost {
			order = append(order, r.Header.Get("Upload-Length"))
		}
		return 0
	}
	b := s.open(1280)
	b.slots(1)
	var paths []string
	for i := range 4 {
		paths = append(paths, s.file(fmt.Sprintf("%d.bin", i), megabyte+i))
	}
	b.add(paths...)
	b.all(3, "waiting")
	for name, tier := range map[string]string{"1.bin": "low", "3.bin": "highest"} {
		b.do(fmt.Sprintf(`{ const e = %s.querySelector("select"); e.value = %q; e.dispatchEvent(new Event("change")) }`,
			rowOf(name), tier))
	}
	s.rate.SetRate(fast)
	b.all(4, "succeeded")
	if got := strings.Join(seen(s, func() []string { return order }), " "); got != "1000000 1000003 1000002 1000001" {
		t.Errorf("the files started in the order %s", got)
	}
}

// The page fits a narrow screen, also with long names, messages, and the dialog.
func TestE1_NarrowScreen(t *testing.T) {
	s := serve(t, still, browser.Config{})
	s.fault = func(r *http.Request) int {
		if r.Method == http.MethodPost && r.Header.Get("Upload-Length") == "77" {
			return http.StatusForbidden
		}
		return 0
	}
	b := s.open(375)
	b.refusals = true
	b.add(s.file(strings.Repeat("a_very_long_name", 8)+".bin", 77), s.file("report 2026.pdf", 3*megabyte),
		s.file("b.bin", 2*megabyte), s.file("c.bin", 2*megabyte), s.file("d.bin", megabyte))
	b.all(1, "error")
	b.all(3, "running")
	for _, dark := range []bool{false, true} {
		b.dark(dark)
		b.fits(375)
	}
	s.await("three requests", func() bool { return s.running == 3 })
	b.run(chromedp.Reload())
	b.all(3, "paused")
	b.fits(375)
	if resume := eval[bool](b, `!document.querySelector("#resume-all").disabled`); resume {
		t.Error("files that have to be chosen again can all be resumed")
	}
}

// fits fails the test if the page or an element of it is wider than the screen, in pixels.
func (b *tab) fits(screen int) {
	b.tb.Helper()
	if width := eval[int](b, `document.documentElement.scrollWidth`); width > screen {
		b.tb.Errorf("the page is %d pixels wide", width)
	}
	out := eval[[]string](b, fmt.Sprintf(`[...document.querySelectorAll("body *:not(.hidden, option)")]
		.filter((e) => e.getBoundingClientRect().right > %d.5 && getComputedStyle(e).display !== "none")
		.map((e) => e.outerHTML.slice(0, 80))`, screen))
	if len(out) > 0 {
		b.tb.Errorf("elements reach beyond the screen: %q", out)
	}
}

// Five hundred files: each row is made once and changed afterwards, and no more than three are sent at once.
func TestE3_FiveHundredFiles(t *testing.T) {
	const files = 500
	s := serve(t, fast, browser.Config{})
	b := s.open(1280)
	var paths []string
	for i := range files {
		paths = append(paths, s.file(fmt.Sprintf("%03d.bin", i), 100+i))
	}
	b.do(`window.removed = 0; window.added = 0; new MutationObserver((all) => {
		for (const m of all) { removed += m.removedNodes.length; added += m.addedNodes.length; }
	}).observe(document.querySelector("#list"), { childList: true });`)
	b.add(paths...)
	b.all(files, "succeeded")
	if added, removed := eval[int](b, `added`), eval[int](b, `removed`); added != files || removed != 0 {
		t.Errorf("%d rows were added and %d removed, want %d and none", added, removed, files)
	}
	if most := seen(s, func() int { return s.most }); most > 3 {
		t.Errorf("%d requests were running at once, want 3", most)
	}
	if got := b.summary(); !strings.HasPrefix(got, "500 succeeded") {
		t.Errorf("the summary is %q", got)
	}
	s.received(paths...)
}

// All orders can be given by the keyboard, and the focus stays in the row.
func TestE2_Keyboard(t *testing.T) {
	s := serve(t, still, browser.Config{})
	b := s.open(1280)
	b.add(s.file("a.bin", 3*megabyte))
	b.is("a.bin", "running")
	focused := func() string {
		return eval[string](b, `document.activeElement.getAttribute("aria-label") ?? document.activeElement.id`)
	}
	var stops []string
	for range 20 {
		b.run(chromedp.KeyEvent(kb.Tab))
		at := focused()
		stops = append(stops, at)
		if at == "Pause a.bin" {
			break
		}
	}
	if stops[0] != "files" || stops[len(stops)-1] != "Pause a.bin" {
		t.Fatalf("Tab stops at %q", stops)
	}
	b.run(chromedp.KeyEvent(kb.Enter))
	b.is("a.bin", "paused")
	if got := focused(); got != "Resume a.bin" {
		t.Errorf("after the pause the focus is at %q", got)
	}
	b.run(chromedp.KeyEvent(" "))
	b.is("a.bin", "running")
	if got := focused(); got != "Pause a.bin" {
		t.Errorf("after the resume the focus is at %q", got)
	}
}

// The token is asked for once in a tab, is in no URL, and does not outlive the tab. When the server does not accept
// it any more, the files wait for another one.
func TestE1_Token(t *testing.T) {
	s := serve(t, fast, browser.Config{Token: true})
	token := "first"
	s.fault = func(r *http.Request) int {
		if r.Header.Get("Authorization") != "Bearer "+token {
			return http.StatusUnauthorized
		}
		return 0
	}
	b := s.open(1280)
	b.refusals = true
	b.await("the dialog", `document.querySelector("#sign-in").open`)
	give := func(token string) {
		b.run(chromedp.SetValue(chromedp.CSS("#token"), token))
		b.click("#sign-in button")
	}
	give("wrong")
	b.await("the refusal", `document.querySelector("#refused").textContent.includes("does not accept")`)
	give("first")
	b.await("the end of the dialog", `!document.querySelector("#sign-in").open`)
	one, two := s.file("one.bin", 1000), s.file("two.bin", 1001)
	b.add(one)
	b.is("one.bin", "succeeded")

	b.run(chromedp.Reload())
	b.await("the page", `document.querySelector("#summary").textContent === "No files yet."`)
	if eval[bool](b, `document.querySelector("#sign-in").open`) {
		t.Error("the token is asked for again after a reload")
	}
	seen(s, func() bool { token = "second"; return true })
	b.add(two)
	b.await("the dialog", `document.querySelector("#sign-in").open`)
	b.is("two.bin", "waiting")
	give("second")
	b.is("two.bin", "succeeded")
	s.received(one, two)
	for _, r := range seen(s, func() []string { return s.requests }) {
		if strings.Contains(r, "?") || strings.Contains(r, "first") {
			t.Errorf("a request has more than a path in its URL: %s", r)
		}
	}
	kept := eval[string](b, `JSON.stringify(localStorage) + location.href + document.cookie`)
	if strings.Contains(kept, "second") || strings.Contains(kept, "first") {
		t.Errorf("the token is kept beyond the tab: %s", kept)
	}
}

// A page without a token goes on when the session of its application, which has ended, was renewed.
func TestE1_SessionThatEnds(t *testing.T) {
	s := serve(t, fast, browser.Config{})
	ended := true
	s.fault = func(*http.Request) int {
		if ended {
			return http.StatusUnauthorized
		}
		return 0
	}
	b := s.open(1280)
	b.refusals = true
	path := s.file("one.bin", 1000)
	b.add(path)
	b.await("the notice", `document.querySelector("#notice").textContent.includes("does not accept this session")`)
	if eval[bool](b, `document.querySelector("#sign-in").open`) {
		t.Error("the page asks for a token")
	}
	b.is("one.bin", "waiting")
	seen(s, func() bool { ended = false; return true })
	b.click("#resume-all")
	b.is("one.bin", "succeeded")
	s.received(path)
}

// A page whose site may store nothing sends files, and asks for a token once.
func TestE1_WithoutStorage(t *testing.T) {
	s := serve(t, fast, browser.Config{Token: true})
	s.fault = func(r *http.Request) int {
		if r.Header.Get("Authorization") != "Bearer any" {
			return http.StatusUnauthorized
		}
		return 0
	}
	b := s.open(1280)
	b.refusals = true
	b.await("the dialog", `document.querySelector("#sign-in").open`)
	b.do(`void Object.defineProperty(window, "sessionStorage", {
		get() { throw new DOMException("no", "SecurityError") } })`)
	b.run(chromedp.SetValue(chromedp.CSS("#token"), "any"))
	b.click("#sign-in button")
	b.await("the end of the dialog", `!document.querySelector("#sign-in").open`)
	path := s.file("one.bin", 1000)
	b.add(path)
	b.is("one.bin", "succeeded")
	s.received(path)
}

// An emptied number of uploads at once changes nothing.
func TestE1_EmptyNumberOfSlots(t *testing.T) {
	s := serve(t, fast, browser.Config{})
	b := s.open(1280)
	b.do(`{ const e = document.querySelector("#slots"); e.value = ""; e.dispatchEvent(new Event("change")) }`)
	if n := eval[string](b, `document.querySelector("#slots").value`); n != "3" {
		t.Errorf("the number is %q, want that in force", n)
	}
	path := s.file("one.bin", 1000)
	b.add(path)
	b.is("one.bin", "succeeded")
	s.received(path)
}

// Escape does not close the dialog of the token, also if it is pressed again: browsers let a page prevent that once.
func TestE1_TokenAndEscape(t *testing.T) {
	s := serve(t, fast, browser.Config{Token: true})
	b := s.open(1280)
	b.await("the dialog", `document.querySelector("#sign-in").open`)
	for range 4 {
		b.run(chromedp.KeyEvent(kb.Escape))
	}
	b.await("the dialog", `document.querySelector("#sign-in:modal") !== null`)
	b.run(chromedp.SetValue(chromedp.CSS("#token"), "any"))
	b.click("#sign-in button")
	b.await("the end of the dialog", `!document.querySelector("#sign-in").open`)
	b.run(chromedp.KeyEvent(kb.Escape))
	if eval[bool](b, `document.querySelector("#sign-in").open`) {
		t.Error("the dialog opens again although the token is accepted")
	}
}

// An empty file arrives, is finished by a request that can be repeated, and is not sent again.
func TestE4_EmptyFileInBrowser(t *testing.T) {
	s := serve(t, fast, browser.Config{})
	path := s.file("empty.txt", 0)
	b := s.open(1280)
	b.add(path)
	b.is("empty.txt", "succeeded")
	s.received(path)
	if n := s.methods(http.MethodPatch); n != 1 {
		t.Errorf("%d requests finish the file, want 1", n)
	}
	b.run(chromedp.Reload())
	b.await("an empty list", `document.querySelector("#summary").textContent === "No files yet."`)
	b.add(path)
	b.is("empty.txt", "succeeded")
	s.received(path)
}

// A file that changes after it was chosen ends in error, and has to be chosen again.
func TestE4_FileChangesInBrowser(t *testing.T) {
	s := serve(t, still, browser.Config{})
	b := s.open(1280)
	b.refusals = true
	path := s.file("a.bin", 2*chunk)
	b.add(path)
	s.await("bytes", func() bool { return s.bytes > 0 })
	if err := os.WriteFile(path, []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Time{}, time.Unix(1_700_000_000, 0)); err != nil {
		t.Fatal(err)
	}
	s.rate.SetRate(fast)
	b.is("a.bin", "error")
	if got := b.text("a.bin", ".state"); got != "error: choose the file again" {
		t.Errorf("the state is %q", got)
	}
	b.press("a.bin", "cancel")
	b.is("a.bin", "cancelled")
	s.received()
}

// Sizes have three digits and a unit, also just below the next unit.
func TestE1_SizesInBrowser(t *testing.T) {
	s := serve(t, fast, browser.Config{})
	b := s.open(1280)
	for size, want := range map[int]string{999: "999 B", 999_499: "999 kB", 999_500: "1.00 MB"} {
		name := fmt.Sprint(size)
		b.add(s.file(name, size))
		b.is(name, "succeeded")
		if got := b.text(name, ".facts"); got != want {
			t.Errorf("%d bytes are %q, want %q", size, got, want)
		}
	}
}

// The focus stays in a row whose button goes, and moves to the next row from one that goes.
func TestE2_FocusInBrowser(t *testing.T) {
	s := serve(t, still, browser.Config{})
	b := s.open(1280)
	b.slots(1)
	focused := func(name, order string) {
		t.Helper()
		b.await(fmt.Sprintf("the focus on %s of %s", order, name), fmt.Sprintf(
			`document.activeElement === %s.querySelector("[data-order=%s]")`, rowOf(name), order))
	}
	b.add(s.file("a", megabyte))
	b.is("a", "running")
	b.add(s.file("b", megabyte))
	b.is("b", "waiting")
	b.press("b", "pause")
	b.is("b", "paused")
	b.do(rowOf("a") + `.querySelector("[data-order=pause]").focus()`)
	s.rate.SetRate(fast)
	b.is("a", "succeeded")
	focused("a", "forget")
	b.run(chromedp.KeyEvent(kb.Enter))
	focused("b", "resume")
	b.press("b", "cancel")
	b.do(rowOf("b") + `.querySelector("[data-order=forget]").focus()`)
	b.run(chromedp.KeyEvent(kb.Enter))
	b.await("the focus on the files", `document.activeElement.id === "files"`)
}
