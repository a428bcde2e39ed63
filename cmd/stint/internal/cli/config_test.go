package cli //nolint:testpackage // the room for processes of a test cannot be set

import "testing"

// Many jobs are limited by the room for processes and threads, of which each needs one; few are not, for
// which the room is not determined.
func TestB5_MostJobs(t *testing.T) {
	files := filesJobs()
	if files < 100 {
		t.Fatalf("the limit on open files allows %d jobs, too few for this test", files)
	}
	for _, c := range []struct {
		text       string
		room, want int
	}{
		{"0", 40, 20},
		{"100", 20, 10},
		{"100", 0, 1},
		{"@file", 40, 20},
		{"0", 1 << 30, files},
		{"", 2, files},
		{"4", 2, files},
		{"16", 2, files},
	} {
		if got := mostJobs(c.text, func() int { return c.room }); got != c.want {
			t.Errorf("-j %s, room for %d: %d jobs, want %d", c.text, c.room, got, c.want)
		}
	}
}
