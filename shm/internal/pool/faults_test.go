package pool //nolint:testpackage // the faults are put into its source

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stintgo/stint/internal/seeded"
)

// faults are mistakes that the search has to find, each as a replacement of source code.
// Most omit or reorder a step; each is plausible, and some were made.
var faults = []struct{ name, file, code, instead string }{
	{
		"no look at the slots after entering the mask", "handle.go",
		"l.mask.set(m.bit)\n\t\tfor s := range l.count {", "l.mask.set(m.bit)\n\t\tfor s := range 0 {",
	},
	{
		"Release reads the mask before it frees the slot", "handle.go",
		"if !h.slots[slot].cas(h.held, 0) || h.mask.load() == 0 {",
		"if waiting := h.mask.load(); !h.slots[slot].cas(h.held, 0) || waiting == 0 {",
	},
	{
		"a waiter that finds no slot does not enter the mask again", "handle.go",
		"\th.enter()\n\treturn false", "\treturn false",
	},
	{
		"a participant that no longer waits keeps its grant", "handle.go",
		"h.mayAccept(seen) && l.slot(s).cas(seen, freed(seen))", "h.mayAccept(seen) && false",
	},
	{
		"a participant that no longer waits frees its grant without placing it", "handle.go",
		"freed(seen)) {\n\t\t\tm.pool.place(l, s)\n", "freed(seen)) {\n",
	},
	{
		"a busy participant is granted slots", "handle.go",
		"want.Count > 0 && !want.Busy", "want.Count > 0",
	},
	{
		"the next participant of an entry has the generation of the previous one", "member.go",
		"return generationOf(was) + 1", "return max(generationOf(was), 1)",
	},
	{
		"Join keeps what the previous participant held", "member.go",
		"\tp.vacate(i)\n\treturn generationOf", "\treturn generationOf",
	},
	{
		"Join keeps the want of the previous participant", "member.go",
		"\t\tl.want(i).store(0)\n", "",
	},
	{
		"Join takes the life lock before the previous participant is gone", "member.go",
		"\tp.examine(i)\n\twas := p.state(i).load()\n\tif isLive(was) || !p.host.Lock(lifeLock(i)) {\n\t\treturn 0\n\t}",
		"\twas := p.state(i).load()\n\tif !p.host.Lock(lifeLock(i)) {\n\t\treturn 0\n\t}\n\tp.state(i).store(gone(was))",
	},
	{
		"Leave marks the participant as gone last", "member.go",
		"\tm.pool.state(m.index).store(gone(m.pool.state(m.index).load()))\n\tm.pool.vacate(m.index)",
		"\tm.pool.vacate(m.index)\n\tm.pool.state(m.index).store(gone(m.pool.state(m.index).load()))",
	},
	{
		"Leave releases the life lock first", "member.go",
		"\tm.pool.state(m.index).store(gone(m.pool.state(m.index).load()))\n\tm.pool.vacate(m.index)\n" +
			"\tm.pool.host.Unlock(lifeLock(m.index))",
		"\tm.pool.host.Unlock(lifeLock(m.index))\n\tm.pool.vacate(m.index)\n" +
			"\tm.pool.state(m.index).store(gone(m.pool.state(m.index).load()))",
	},
	{
		"the lower tier goes first", "want.go",
		"return tierOf(a) > tierOf(b)", "return tierOf(a) < tierOf(b)",
	},
	{
		"place stops after a grant that was not accepted", "grant.go",
		"\t\tp.grant(l, s, seen, i)\n", "\t\tp.grant(l, s, seen, i)\n\t\treturn\n",
	},
	{
		"grant writes the mask before the slot", "grant.go",
		"\tif !l.slot(s).cas(seen, slot) {\n\t\treturn\n\t}\n\twaited := l.mask.clear(1 << i)\n",
		"\twaited := l.mask.clear(1 << i)\n\tif !l.slot(s).cas(seen, slot) {\n\t\treturn\n\t}\n",
	},
	{
		"a grant to a participant that is out of the mask stays", "grant.go",
		"if !waited || !isLive(state) {", "if !isLive(state) {",
	},
	{
		"Want leaves the mask after it has looked for grants", "handle.go",
		"\tl.mask.clear(m.bit)\n\tfor s := range", "\tdefer l.mask.clear(m.bit)\n\tfor s := range",
	},
	{
		"grant wakes no participant", "grant.go",
		"if waited {", "if false {",
	},
	{
		"a bell is woken before it changes", "pool.go",
		"\tbell.increment()\n\tp.host.Wake((*uint64)(bell))", "\tp.host.Wake((*uint64)(bell))\n\tbell.increment()",
	},
	{
		"examine reads the lock before the state", "repair.go",
		"if was := p.state(i).load(); isLive(was) && !p.host.Held(lifeLock(i)) {",
		"held := p.host.Held(lifeLock(i))\n\tif was := p.state(i).load(); isLive(was) && !held {",
	},
	{
		"examine overwrites a state that has changed", "repair.go",
		"p.state(i).cas(was, gone(was))", "p.state(i).store(gone(was))",
	},
	{
		"examine marks the living as gone", "repair.go",
		" && !p.host.Held(lifeLock(i)) {", " {",
	},
	{
		"Reap examines no participant", "repair.go",
		"if i != m.index {", "if i < 0 {",
	},
	{
		"no waiter looks for the dead", "repair.go",
		"\tm.Reap()\n\treturn true", "\treturn true",
	},
	{
		"only the first Sweep looks for the dead", "repair.go",
		"now-int64(last) < period || ", "last != 0 || ",
	},
	{
		"slots of the dead are not placed", "repair.go",
		"\t\tp.place(l, s)\n\t\tp.passStopped", "\t\tp.passStopped",
	},
	{
		"ReapOwners leaves a grant to a participant that does not wait", "repair.go",
		"\t\tm.pool.takeUnwanted(l)\n", "",
	},
	{
		"ReapOwners queries no participant", "repair.go",
		"asked := m.bit", "asked := ^uint64(0)",
	},
	{
		"ReapOwners does not query the receivers of recovered slots", "repair.go",
		"\t\tdead = m.examineOwners(l)\n", "\t\tdead = m.examineOwners(l) && dead\n\t\tm.pool.recoverSlots(l)\n\t\treturn\n",
	},
	{
		"ReapOwners leaves a free slot to a dead waiter", "repair.go",
		"\t\tm.pool.recoverSlots(l)\n\t\tdead = m.examineOwners(l)\n",
		"\t\tdead = m.examineOwners(l)\n\t\tm.pool.recoverSlots(l)\n",
	},
	{
		"recoverSlots frees only slots that are held", "repair.go",
		"!isFree(seen) && !p.lives(seen)", "!isFree(seen) && seen&granted == 0 && !p.lives(seen)",
	},
	{
		"recoverSlots overwrites a slot that has changed", "repair.go",
		"l.slot(s).cas(seen, freed(seen))\n\t\t}\n\t\tp.place",
		"l.slot(s).store(freed(seen))\n\t\t}\n\t\tp.place",
	},
	{
		"a grant is never taken back", "repair.go",
		"sightings[s].times > periodsMax", "false",
	},
	{
		"a stopped participant keeps its grant", "repair.go",
		"seen&granted == 0 || !p.host.Stopped(indexOf(seen))", "true",
	},
	{
		"the grant of a stopped participant is freed without placing it", "repair.go",
		"freed(seen)) {\n\t\t\tp.place(l, s)\n\t\t}\n\t}\n}\n\n// Sweep", "freed(seen)) {\n\t\t}\n\t}\n}\n\n// Sweep",
	},
	{
		"a slot that a stopped participant holds is taken away", "repair.go",
		"if seen&granted == 0 || !p.host", "if isFree(seen) || !p.host",
	},
	{
		"freed does not mark the slot as abandoned", "owner.go",
		"\treturn abandoned\n", "\treturn 0\n",
	},
	{
		"freed marks a grant to the dead as abandoned", "owner.go",
		"return slot & abandoned //", "return abandoned //",
	},
	{
		"grant clears the abandoned bit", "grant.go",
		"| granted | seen", "| granted",
	},
	{
		"Yield goes by tier", "handle.go",
		"(*queue).oldest", "(*queue).best",
	},
	{
		"Enqueue does not ring the next participant", "bucket.go",
		"if before(was, is) {", "if before(was, is) && false {",
	},
	{
		"Enqueue rings the next participant only when it leaves", "bucket.go",
		"if before(was, is) {", "if was != 0 && is == 0 {",
	},
	{
		"Enqueue looks for the next participant before it has left", "bucket.go",
		"\tb.want(m.index).store(is)\n",
		"\tif is == 0 {\n\t\tm.pool.pass(b, m.index)\n\t\twas = 0\n\t}\n\tb.want(m.index).store(is)\n",
	},
	{
		"Enqueue may ring a participant that has left", "bucket.go",
		"\t} else {\n\t\tb.mask.clear(m.bit)\n\t}\n", "\t} else {\n\t\tdefer b.mask.clear(m.bit)\n\t}\n",
	},
	{
		"the dead stay in the queue", "bucket.go",
		"if isLive(p.state(i).load()) {", "if true {",
	},
	{
		"Evict ignores that tokens are not taken", "bucket.go",
		"s.idle > periodsMax", "false",
	},
	{
		"Leave stays in the queue of a bucket", "member.go",
		"\t\tb.want(i).store(0)\n\t\tb.mask.clear(1 << i)\n", "",
	},
	{
		"Leave does not ring the next participant of a bucket", "member.go",
		"\t\tp.pass(b, i)\n", "",
	},
	{
		"later tickets go first", "bucket.go",
		"(before(mine, want) || m.index < i && !before(want, mine))", "before(want, mine)",
	},
	{
		"two participants with the same ticket wait for each other", "bucket.go",
		"(before(mine, want) || m.index < i && !before(want, mine))", "before(mine, want)",
	},
}

// TestB8_SearchFindsFaults puts mistakes into the code and checks that the search finds
// them. It tries two at random, as each has to be compiled; with STINT_SEEDS it tries
// all.
func TestB8_SearchFindsFaults(t *testing.T) {
	chosen := faults
	if os.Getenv("STINT_SEEDS") == "" {
		lot := seeded.Rand(t)
		lot.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
		chosen = faults[:2]
	}
	for _, f := range faults {
		source, err := os.ReadFile(f.file)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(source), f.code); n != 1 {
			t.Errorf("%s: %q is %d times in %s, want once", f.name, f.code, n, f.file)
		}
	}
	for _, f := range chosen {
		t.Run(f.name, func(t *testing.T) {
			source, err := os.ReadFile(f.file)
			if err != nil {
				t.Fatal(err)
			}
			out, err := testInstead(t, f.file, strings.Replace(string(source), f.code, f.instead, 1))
			if err == nil {
				t.Error("the search has not found the fault")
			} else if !strings.Contains(out, "in run ") {
				t.Errorf("the test fails for another reason: %v\n%s", err, out)
			}
		})
	}
}

// testInstead runs the search with source in place of a file.
func testInstead(t *testing.T, file, source string) (out string, err error) {
	t.Helper()
	dir := t.TempDir()
	here, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	there := filepath.Join(dir, file)
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{here: there}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{there: []byte(source), filepath.Join(dir, "overlay"): overlay} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1",
		"-overlay", filepath.Join(dir, "overlay"), "-run", "EveryOrder|HigherTierFirst", ".")
	cmd.Env = append(os.Environ(), "STINT_SEEDS=") // the small search must find the fault
	b, err := cmd.CombinedOutput()
	return string(b), err
}
