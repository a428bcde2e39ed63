package archtest_test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// link matches the target of a Markdown link or picture.
var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// block matches blocks and spans of code, in which the same characters have another
// meaning.
var block = regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]+`")

// TestLinks checks every link inside the repository. Links to other hosts are not
// checked: a test must not depend on other servers.
func TestLinks(t *testing.T) {
	err := walk(func(file string, content []byte) error {
		if !strings.HasSuffix(file, ".md") {
			return nil
		}
		for _, found := range link.FindAllSubmatch(block.ReplaceAll(content, nil), -1) {
			target, err := url.Parse(string(found[1]))
			if err != nil || target.IsAbs() {
				continue
			}
			to := filepath.Join(root, filepath.FromSlash(file))
			if target.Path != "" {
				to = filepath.Join(root, path.Dir(file), filepath.FromSlash(target.Path))
			}
			if _, err := os.Stat(to); err != nil || !hasHeading(to, target.Fragment) {
				t.Errorf("%s links to %s, which is not there", file, found[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// heading matches the headings of a Markdown file, and notInAnchor the characters that
// their anchors omit.
var (
	heading     = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// hasHeading reports whether a Markdown file has a heading with an anchor, by GitHub's
// rules. Other files have every anchor, such as the lines of a source.
func hasHeading(file, anchor string) bool {
	if anchor == "" || !strings.HasSuffix(file, ".md") {
		return true
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	for _, h := range heading.FindAllStringSubmatch(string(content), -1) {
		name := notInAnchor.ReplaceAllString(strings.ToLower(h[1]), "")
		if strings.ReplaceAll(name, " ", "-") == anchor {
			return true
		}
	}
	return false
}

// goBlock matches the Go programs of a Markdown file.
var goBlock = regexp.MustCompile("(?ms)^```go\n(package main\n.*?)^```$")

const quickStartLinesMax = 45

// regionName matches the name of a shared memory region in a program.
var regionName = regexp.MustCompile(`(shm\.Open\()"[^"]+"`)

// TestQuickStart follows a guide: it puts each program into an empty module that requires
// this one, and runs it. Programs that need no store run with the network off, which
// shows that they need no new modules.
func TestQuickStart(t *testing.T) {
	found := map[string]int{}
	err := walk(func(file string, content []byte) error {
		if !strings.HasSuffix(file, ".md") {
			return nil
		}
		for _, program := range goBlock.FindAllStringSubmatch(string(content), -1) {
			found[file]++
			if n := strings.Count(program[1], "\n"); n >= quickStartLinesMax {
				t.Errorf("a quick start of %s has %d lines; keep it under %d", file, n, quickStartLinesMax)
			}
			runAsUser(t, file, program[1])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"README.md", "docs/shared.md"} {
		if found[file] == 0 {
			t.Errorf("%s has no Go block that starts with package main", file)
		}
	}
}

func runAsUser(t *testing.T, file, program string) {
	t.Helper()
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// The region is in the test's directory, and is removed with it.
	program = regionName.ReplaceAllString(program, fmt.Sprintf("$1%q", filepath.Join(dir, "region")))
	files := map[string]string{
		"main.go": program,
		"go.sum":  string(sums),
		"go.mod": "module example.com/quickstart\n\ngo 1.26\n\n" +
			"require " + module + " v0.0.0\n\nreplace " + module + " => " + top + "\n",
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	action := "run"
	if strings.Contains(program, module+"/shm") && runtime.GOOS != "linux" {
		action = "vet" // running would fail without shared memory
	}
	cmd := exec.CommandContext(t.Context(), "go", action, ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	if !strings.Contains(program, module+"/queue/filestore") {
		cmd.Env = append(cmd.Env, "GOPROXY=off")
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the quick start of %s does not run: %v\n%s", file, err, out)
	}
	t.Logf("the quick start of %s printed:\n%s", file, out)
}

// listed matches a line of a list of files in a comment.
var listed = regexp.MustCompile(`(?m)^//(?:   - |\t)([a-z0-9_]+\.go)(?::| )`)

// A package whose documentation has a list of its files lists each of them, and no other.
// Test files may be left out, as may files for one system.
func TestListsOfFiles(t *testing.T) {
	lists := 0
	for _, f := range goFiles(t) {
		if f.isTest() {
			continue
		}
		content, err := os.ReadFile(filepath.Join(root, f.path))
		if err != nil {
			t.Fatal(err)
		}
		names := listed.FindAllSubmatch(content, -1)
		if len(names) < 3 {
			continue
		}
		lists++
		named := map[string]bool{path.Base(f.path): true}
		for _, name := range names {
			named[string(name[1])] = true
			if _, err := os.Stat(filepath.Join(root, path.Dir(f.path), string(name[1]))); err != nil {
				t.Errorf("%s lists %s, which does not exist", f.path, name[1])
			}
		}
		for _, other := range goFiles(t) {
			if path.Dir(other.path) == path.Dir(f.path) && !other.isTest() && !named[path.Base(other.path)] {
				t.Errorf("%s does not list %s", f.path, path.Base(other.path))
			}
		}
	}
	const least = 27
	if lists < least {
		t.Errorf("%d lists of files were found; expected %d", lists, least)
	}
}
