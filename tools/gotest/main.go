// Command gotest runs go test over several modules and counts what it did, so
// that one line says how many tests passed and how many failed:
//
//	gotest MODULE... -- [arguments of go test]
//
// The exit status is 1 if a test failed, was skipped or did not build, or if
// no test ran at all.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
)

func main() {
	modules, args, err := split(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	t := newTally(os.Stdout)
	for _, dir := range modules {
		if err := run(context.Background(), dir, args, t); err != nil {
			t.broken(dir, err)
		}
	}
	if !t.report() {
		os.Exit(1)
	}
}

// split tells the modules' directories from the arguments for go test.
func split(args []string) (modules, rest []string, err error) {
	i := slices.Index(args, "--")
	if i < 1 {
		return nil, nil, errors.New("usage: gotest MODULE... -- [arguments of go test]")
	}
	return args[:i], args[i+1:], nil
}

// run tests one module. A failed test is in the tally and is no error here;
// an error means that go test itself could not do its work.
func run(ctx context.Context, dir string, args []string, t *tally) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	before := t.failed
	lines := bufio.NewReader(out)
	for {
		line, readErr := lines.ReadBytes('\n')
		if len(line) > 0 {
			t.line(line)
		}
		if readErr != nil {
			break
		}
	}
	// go test exits with 1 for a failed test too, which is already counted.
	if err := cmd.Wait(); err != nil && t.failed == before {
		return err
	}
	return nil
}
