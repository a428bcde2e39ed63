package browsertest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stintgo/stint/internal/command"
)

// chromium is the context of the browser, which all tests share. Each test has tabs of its own, at an origin of its
// own, since its server has a port of its own.
var chromium context.Context

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if err := command.Need("chromium:chromium", "node:nodejs"); err != nil {
		return 1, err
	}
	profile, err := os.MkdirTemp("", "stint-browser")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(profile)           //nolint:errcheck // Chromium may still write while it ends
	temp := filepath.Join(profile, "tmp") // Chromium does not remove what it has in its directory of temporary files
	if err := os.Mkdir(temp, 0o700); err != nil {
		return 1, err
	}
	allocator, end := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath("chromium"), chromedp.UserDataDir(profile), chromedp.WSURLReadTimeout(patience),
		chromedp.Env("TMPDIR="+temp),
		chromedp.NoSandbox, // Chromium refuses to run as root otherwise
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"), // the tests stay on this machine
		chromedp.Flag("no-proxy-server", true),
	)...)
	defer end()
	tab, closeTab := chromedp.NewContext(allocator)
	defer closeTab()
	late := time.AfterFunc(patience, end)
	if err := chromedp.Do(tab); err != nil { // starts the browser
		return 1, fmt.Errorf("start chromium: %w", err)
	}
	late.Stop()
	chromium = tab //nolint:fatcontext // the tabs of all tests are made from it
	return m.Run(), nil
}
