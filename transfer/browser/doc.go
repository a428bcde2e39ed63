// Package browser serves a page from which browsers upload files to a
// [github.com/stintgo/stint/transfer/receiver.Receiver], or to another server of tus 1.0. It
// is an [http.Handler] for any server:
//
//	page, err := browser.New(browser.Config{Endpoint: "/files/"})
//	...
//	mux.Handle("/", page)
//	mux.Handle("/files/", receiver)
//
// The page sends some files at a time, by default 3, in the order of their priorities; pauses,
// resumes, cancels and retries them; and continues after a reload, when the files are chosen
// again. Its scheduler is the ES module scheduler.js, which has no user interface and is served
// beside the page, so that other pages can use it. docs/browser.md describes both.
package browser
