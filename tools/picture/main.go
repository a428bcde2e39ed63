// Command picture records a terminal in which stint run does its main job, is
// killed in the middle and resumed, and draws what was on the screen as an SVG
// that moves by CSS alone, so that it plays where scripts are not allowed:
//
//	picture -stint bin/stint -goroot "$(go env GOROOT)" -o docs/stint-run.svg
//
// Nothing in the picture is made up: the commands are typed into a shell on a
// pseudo-terminal, and run. Only the time is compressed.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

func main() {
	stint := flag.String("stint", "bin/stint", "the `program` to show")
	out := flag.String("o", "docs/stint-run.svg", "the `file` to write")
	length := flag.Duration("length", 14*time.Second, "`time` that the picture takes, whatever the recording took")
	root := flag.String("goroot", "/usr/local/go", "the Go `directory` whose files are compressed, as in go env GOROOT")
	flag.Parse()
	if err := picture(*stint, *root, *out, *length); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

func picture(stint, root, out string, length time.Duration) error {
	// Symbolic links in a directory of our own keep every path on the screen
	// short, and the same on all machines.
	dir, err := os.MkdirTemp("", "picture")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if stint, err = filepath.Abs(stint); err != nil {
		return err
	}
	err = os.Symlink(stint, filepath.Join(dir, "stint"))
	if err = errors.Join(err, os.Symlink(root, filepath.Join(dir, "go"))); err != nil {
		return err
	}
	f, err := record(dir)
	if err != nil {
		return err
	}
	return os.WriteFile(out, []byte(f.svg(length)), 0o644)
}

// prompted matches a screen on which the shell waits for a command, or for the
// rest of one.
var prompted = regexp.MustCompile(`(?:^|\n)[$>] *\n*$`)

// What the scene waits for: a progress bar at its half, and the shell's word
// for what happened to stint then.
var (
	halfway = regexp.MustCompile(`\(4\d%\)`)
	killed  = regexp.MustCompile(`Killed`)
)

// The command has the main job's parts: two at a time, tiers, a rate limit.
const (
	compress = `stint run -j2 --rate 100/s --priority {1} -a files -C '\t' --joblog log`
	each     = "  --stdout out/{2}.gz gzip -c {2}\n"
	count    = "cut -sd/ -f3 log | sort | uniq -c\n"
)

// record plays the scene: inputs come in the wrong order, and tiers set it
// right; the other terminal kills stint without a warning; nothing is lost.
func record(dir string) (*film, error) {
	c, err := newCamera(dir)
	defer c.close()
	if err != nil {
		return nil, err
	}
	work, other := c.shells[0], c.shells[1]
	c.command(work, `find go/src/crypto -name '*.go' -printf 'low\t%p\n' > files`+"\n")
	c.command(work, `find go/src/net -name '*.go' -printf 'normal\t%p\n' >> files`+"\n")
	c.command(work, `find go/src/os -name '*.go' -printf 'high\t%p\n' >> files; wc -l files`+"\n")
	c.command(work, compress+" \\\n")
	c.typed(work, each)
	c.until(work, halfway)
	c.typed(other, "kill -9 "+work.child()+"\n")
	c.until(work, killed)
	c.pause(2 * breath) // to see what happened
	c.command(work, count)
	c.command(work, compress+" --resume \\\n")
	c.command(work, each)
	c.command(work, count)
	c.command(work, "gzip -tr out && find out -name '*.gz' | wc -l\n")
	c.pause(holdEnd)
	return c.film, c.err
}
