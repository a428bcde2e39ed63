// Tests of the upload page in a real browser, in a module of their own so that users of Stint never
// see what drives the browser.
module github.com/stintgo/stint/browsertest

go 1.26.0

require (
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.23.0
	github.com/stintgo/stint v0.0.0
)

require (
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/stintgo/stint => ../
