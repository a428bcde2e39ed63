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

// faults are mistakes that the search has to find, in the form of what is written
// instead of the code. Most are steps left out or done in another order; each was
// thinkable, and some were made.
var faults = []struct{ name, file, code, instead string }{
	{
		"no look at the slots after entering the mask", "member.go",
		"l.mask.set(m.bit)\n\t\tfor s := range l.count {", "l.mask.set(m.bit)\n\t\tfor s := range 0 {",
	},
	{
		"releasing looks at the mask first", "seat.go",
		"if !s.slots[slot].cas(s.held, 0) || s.mask.load() == 0 {",
		"if waiting := s.mask.load(); !s.slots[slot].cas(s.held, 0) || waiting == 0 {",
	},
	{
		"who was woken for nothing does not enter again", "member.go",
		"\tm.enter(limit)\n\treturn false", "\treturn false",
	},
	{
		"a grant to one who no longer waits is kept by it", "member.go",
		"m.mayAccept(seen) && l.slot(s).cas(seen, freed(seen))", "m.mayAccept(seen) && false",
	},
	{
		"a slot is not handed on by who no longer waits", "member.go",
		"freed(seen)) {\n\t\t\tm.pool.place(l, s)\n", "freed(seen)) {\n",
	},
	{
		"one who is busy is granted slots", "member.go",
		"want.Count > 0 && !want.Busy", "want.Count > 0",
	},
	{
		"the next in a place has the generation of the last", "member.go",
		"return eraOf(was) + 1", "return max(eraOf(was), 1)",
	},
	{
		"who joins leaves what the last one had", "member.go",
		"\tp.vacate(i)\n\treturn eraOf", "\treturn eraOf",
	},
	{
		"who joins leaves the want of the last one", "member.go",
		"\t\tl.want(i).store(0)\n", "",
	},
	{
		"who joins has the lock of a life before the last one is gone", "member.go",
		"\tp.examine(i)\n\twas := p.state(i).load()\n\tif isLive(was) || !p.host.Lock(life(i)) {\n\t\treturn 0\n\t}",
		"\twas := p.state(i).load()\n\tif !p.host.Lock(life(i)) {\n\t\treturn 0\n\t}\n\tp.state(i).store(gone(was))",
	},
	{
		"who leaves is gone last", "member.go",
		"\tm.pool.state(m.index).store(gone(m.pool.state(m.index).load()))\n\tm.pool.vacate(m.index)",
		"\tm.pool.vacate(m.index)\n\tm.pool.state(m.index).store(gone(m.pool.state(m.index).load()))",
	},
	{
		"who leaves lets go of its life first", "member.go",
		"\tm.pool.state(m.index).store(gone(m.pool.state(m.index).load()))\n\tm.pool.vacate(m.index)\n" +
			"\tm.pool.host.Unlock(life(m.index))",
		"\tm.pool.host.Unlock(life(m.index))\n\tm.pool.vacate(m.index)\n" +
			"\tm.pool.state(m.index).store(gone(m.pool.state(m.index).load()))",
	},
	{
		"the lower tier goes first", "want.go",
		"return tierOf(a) > tierOf(b)", "return tierOf(a) < tierOf(b)",
	},
	{
		"a slot that the chosen one did not need is left", "grant.go",
		"\t\tp.grant(l, s, seen, i)\n", "\t\tp.grant(l, s, seen, i)\n\t\treturn\n",
	},
	{
		"the mask comes first and the slot second", "grant.go",
		"\tif !l.slot(s).cas(seen, slot) {\n\t\treturn\n\t}\n\twaited := l.mask.clear(1 << i)\n",
		"\twaited := l.mask.clear(1 << i)\n\tif !l.slot(s).cas(seen, slot) {\n\t\treturn\n\t}\n",
	},
	{
		"a grant to one who has left the mask stays", "grant.go",
		"if !waited || !isLive(state) {", "if !isLive(state) {",
	},
	{
		"leaves the mask after it has looked for grants", "member.go",
		"\tl.mask.clear(m.bit)\n\tfor s := range", "\tdefer l.mask.clear(m.bit)\n\tfor s := range",
	},
	{
		"nobody is woken", "grant.go",
		"if waited {", "if false {",
	},
	{
		"woken before it has the slot", "pool.go",
		"p.entry(i, entryBell).increment()\n\tp.host.Wake(i)", "p.host.Wake(i)\n\tp.entry(i, entryBell).add(1)",
	},
	{
		"the lock is looked at before the state", "repair.go",
		"if was := p.state(i).load(); isLive(was) && !p.host.Held(life(i)) {",
		"held := p.host.Held(life(i))\n\tif was := p.state(i).load(); isLive(was) && !held {",
	},
	{
		"found dead without a look whether it has changed", "repair.go",
		"p.state(i).cas(was, gone(was))", "p.state(i).store(gone(was))",
	},
	{
		"the living are found dead", "repair.go",
		" && !p.host.Held(life(i)) {", " {",
	},
	{
		"nobody is found dead", "repair.go",
		"if i != m.index {", "if i < 0 {",
	},
	{
		"of those who wait nobody looks for the dead", "repair.go",
		"\tm.Reap()\n\treturn true", "\treturn true",
	},
	{
		"whoever has looked for the dead is the last to do so", "repair.go",
		"now-int64(last) < period || ", "last != 0 || ",
	},
	{
		"what the dead had is not handed on", "repair.go",
		"\t\tp.place(l, s)\n\t\tp.passStopped", "\t\tp.passStopped",
	},
	{
		"one who tries leaves a slot that was granted to one who does not wait", "repair.go",
		"\t\tm.pool.takeUnwanted(l)\n", "",
	},
	{
		"one who tries asks about nobody", "repair.go",
		"asked := m.bit", "asked := ^uint64(0)",
	},
	{
		"one who tries does not ask about who got the slot of the dead", "repair.go",
		"\t\tdead = m.examineOwners(l)\n", "\t\tdead = m.examineOwners(l) && dead\n\t\tm.pool.reclaim(l)\n\t\treturn\n",
	},
	{
		"one who tries leaves a slot that is free to who has died", "repair.go",
		"\t\tm.pool.reclaim(l)\n\t\tdead = m.examineOwners(l)\n",
		"\t\tdead = m.examineOwners(l)\n\t\tm.pool.reclaim(l)\n",
	},
	{
		"only held slots come back", "repair.go",
		"!isFree(seen) && !p.lives(seen)", "!isFree(seen) && seen&granted == 0 && !p.lives(seen)",
	},
	{
		"freed without a look whether it has changed", "repair.go",
		"l.slot(s).cas(seen, freed(seen))\n\t\t}\n\t\tp.place",
		"l.slot(s).store(freed(seen))\n\t\t}\n\t\tp.place",
	},
	{
		"a grant is never taken back", "repair.go",
		"sights[s].times > periodsMax", "false",
	},
	{
		"one that is seen to be stopped keeps what it is granted", "repair.go",
		"seen&granted == 0 || !p.host.Stopped(indexOf(seen))", "true",
	},
	{
		"what one that is stopped was granted is not handed on", "repair.go",
		"freed(seen)) {\n\t\t\tp.place(l, s)\n\t\t}\n\t}\n}\n\n// Sweep", "freed(seen)) {\n\t\t}\n\t}\n}\n\n// Sweep",
	},
	{
		"a slot goes on that is held by one that is stopped", "repair.go",
		"if seen&granted == 0 || !p.host", "if isFree(seen) || !p.host",
	},
	{
		"the next holder is not told", "owner.go",
		"\treturn abandoned\n", "\treturn 0\n",
	},
	{
		"a grant to the dead counts as held", "owner.go",
		"return slot & abandoned //", "return abandoned //",
	},
	{
		"a grant forgets that the slot was abandoned", "grant.go",
		"| granted | seen", "| granted",
	},
	{
		"the guard's turn goes by tier", "seat.go",
		"(*limit).oldest", "(*limit).best",
	},
	{
		"the turn is passed on to nobody", "turn.go",
		"if was != 0 && before(was, is) {", "if before(was, is) && false {",
	},
	{
		"the turn is passed on only when nobody waits any more", "turn.go",
		"if was != 0 && before(was, is) {", "if was != 0 && is == 0 {",
	},
	{
		"who leaves looks who is next before it has left", "turn.go",
		"\tl.want(m.index).store(is)\n",
		"\tif is == 0 {\n\t\tm.pool.pass(l, m.index)\n\t\twas = 0\n\t}\n\tl.want(m.index).store(is)\n",
	},
	{
		"who is not in line any more is rung", "turn.go",
		"\t} else {\n\t\tl.mask.clear(m.bit)\n\t}\n", "\t} else {\n\t\tdefer l.mask.clear(m.bit)\n\t}\n",
	},
	{
		"the dead stay in line", "turn.go",
		"if isLive(p.state(i).load()) {", "if true {",
	},
	{
		"nobody is overtaken", "turn.go",
		"s.idle > periodsMax", "false",
	},
	{
		"who leaves for good stays in line", "member.go",
		"\t\tb.want(i).store(0)\n\t\tb.mask.clear(1 << i)\n", "",
	},
	{
		"who leaves for good passes its turn on to nobody", "member.go",
		"\t\tp.pass(b, i)\n", "",
	},
	{
		"later tickets go first", "turn.go",
		"(before(mine, want) || m.index < i && !before(want, mine))", "before(want, mine)",
	},
	{
		"two with the same ticket wait for each other", "turn.go",
		"(before(mine, want) || m.index < i && !before(want, mine))", "before(mine, want)",
	},
}

// TestB8_SearchFindsFaults puts mistakes into the code and lets the search find
// them. Two of them, drawn by lot: each has to be compiled. STINT_SEEDS asks for
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
				t.Error("the search has not found it")
			} else if !strings.Contains(out, "in run ") {
				t.Errorf("it fails for another reason: %v\n%s", err, out)
			}
		})
	}
}

// testInstead searches with another source instead of a file's.
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
	cmd.Env = append(os.Environ(), "STINT_SEEDS=") // the small search is what has to find it
	b, err := cmd.CombinedOutput()
	return string(b), err
}
