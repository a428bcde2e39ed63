// Package browsertest tests the upload page of [github.com/stintgo/stint/transfer/browser] in
// Chromium, and its scheduler in Node.js. It has no code besides the tests. Both programs are
// installed if they are missing and the tests run as root on Debian; otherwise the tests fail
// with the command that installs them.
package browsertest
