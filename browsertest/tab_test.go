package browsertest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// tab is a tab of the browser with the page of a site.
type tab struct {
	tb   testing.TB
	site *site
	ctx  context.Context //nolint:containedctx // the tab is one, for chromedp

	mu     sync.Mutex
	errors []string // of the console
	// refusals allows messages about answers with an error status, which Chromium writes by itself.
	refusals bool
}

// open opens the page in a tab of a width in pixels. The test fails if the console gets an error or
// a warning.
func (s *site) open(width int) *tab {
	s.tb.Helper()
	ctx, closeTab := chromedp.NewContext(chromium)
	b := &tab{tb: s.tb, site: s, ctx: ctx}
	s.tb.Cleanup(func() {
		closeTab()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, e := range b.errors {
			if !b.refusals || !strings.Contains(e, "Failed to load resource") {
				s.tb.Errorf("the console has: %s", e)
			}
		}
	})
	// A context with a deadline would close the tab at the deadline.
	late := time.AfterFunc(patience, closeTab)
	if err := chromedp.Listen(ctx, b.listen); err != nil { // opens the tab
		s.tb.Fatal(err)
	}
	late.Stop()
	call(b, log.Enable, cdp.Empty{})
	b.run(chromedp.EmulateViewport(int64(width), 800), chromedp.Navigate(s.url))
	b.await("the page", `typeof document.querySelector("#summary") === "object"`)
	return b
}

func (b *tab) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			b.errors = append(b.errors, fmt.Sprintf("%s: %+v", e.Type, e.Args))
		}
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		b.errors = append(b.errors, text)
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			b.errors = append(b.errors, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
		}
	}
}

// run runs actions, each of which ends within patience.
func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.tb.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.tb.Fatal(err)
	}
}

// value returns what an action does, which ends within patience.
func value[T any](b *tab, action chromedp.Action[T]) T {
	b.tb.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, action)
	if err != nil {
		b.tb.Fatal(err)
	}
	return v
}

// call sends a command of the DevTools protocol.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) {
	b.tb.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if _, err := chromedp.Call(ctx, command, params); err != nil {
		b.tb.Fatal(err)
	}
}

// eval returns the value of an expression of JavaScript, or of the promise that it is.
func eval[T any](b *tab, expression string) T {
	b.tb.Helper()
	return value(b, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// do runs a statement of JavaScript.
func (b *tab) do(statement string) {
	b.tb.Helper()
	b.run(chromedp.Evaluate[chromedp.Void](statement))
}

// click clicks an element with the mouse.
func (b *tab) click(selector chromedp.CSS) {
	b.tb.Helper()
	b.run(chromedp.Click(selector))
}

// slots sets how many files are sent at once.
func (b *tab) slots(n int) {
	b.tb.Helper()
	b.do(fmt.Sprintf(`{ const e = document.querySelector("#slots");
		e.value = %d; e.dispatchEvent(new Event("change")) }`, n))
}

// await waits until an expression is true.
func (b *tab) await(what, expression string) {
	b.tb.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	_, err := chromedp.Run(ctx, chromedp.Poll[chromedp.Void](expression,
		chromedp.WithPollingInterval(pollEvery), chromedp.WithPollingTimeout(patience)))
	if err != nil {
		b.tb.Fatalf("waited in vain for %s: %v; the page says\n%s", what, err, eval[string](b, `document.body.innerText`))
	}
}

// rowOf is an expression for the row of a file.
func rowOf(name string) string {
	quoted, err := json.Marshal(name)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`[...document.querySelectorAll("#list > li")]
		.find((r) => r.querySelector(".name").textContent === %s)`, quoted)
}

// is waits until a file is in a state.
func (b *tab) is(name, state string) {
	b.tb.Helper()
	b.await(name+" to be "+state, fmt.Sprintf(`%s?.dataset.state === %q`, rowOf(name), state))
}

// all waits until that many rows are in a state.
func (b *tab) all(n int, state string) {
	b.tb.Helper()
	b.await(fmt.Sprintf("%d files to be %s", n, state),
		fmt.Sprintf(`document.querySelectorAll("#list > li[data-state=%s]").length === %d`, state, n))
}

// press presses the button of a file.
func (b *tab) press(name, order string) {
	b.tb.Helper()
	b.do(fmt.Sprintf(`%s.querySelector("[data-order=%s]").click()`, rowOf(name), order))
}

// text returns the text of the first element of a file's row that matches a selector.
func (b *tab) text(name, selector string) string {
	b.tb.Helper()
	return spaced(eval[string](b, fmt.Sprintf(`%s.querySelector(%q).textContent`, rowOf(name), selector)))
}

// summary returns the text about all files.
func (b *tab) summary() string {
	b.tb.Helper()
	return spaced(eval[string](b, `document.querySelector("#summary").textContent`))
}

// spaced replaces the spaces at which no line breaks by others.
func spaced(text string) string { return strings.ReplaceAll(text, "\u00a0", " ") }

// add chooses files as a user does.
func (b *tab) add(paths ...string) {
	b.tb.Helper()
	b.run(chromedp.SetUploadFiles(chromedp.CSS("#files"), paths))
}

// chooseAgain chooses the file of a row again.
func (b *tab) chooseAgain(name, path string) {
	b.tb.Helper()
	input := value(b, chromedp.Evaluate[*runtime.RemoteObject](rowOf(name)+`.querySelector(".choose input")`))
	call(b, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: []string{path}, ObjectID: input.ObjectID})
}

// dark makes the browser prefer a dark or a light page.
func (b *tab) dark(dark bool) {
	b.tb.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
}
