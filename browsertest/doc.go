// Package browsertest tests the upload page of [github.com/stintgo/stint/transfer/browser] in
// Chromium. It has no code besides the tests. Chromium is installed if it is missing and the
// tests run as root on Debian; otherwise the tests fail with the command that installs it.
package browsertest
