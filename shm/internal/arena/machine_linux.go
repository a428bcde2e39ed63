package arena

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func thisMachine() (here machine, err error) {
	if here.boot, err = bootID(); err != nil {
		return here, err
	}
	var st unix.Stat_t
	switch err := unix.Stat("/proc/self/ns/time", &st); {
	case err == nil:
		here.clock = st.Ino
	case !errors.Is(err, os.ErrNotExist):
		return here, &os.PathError{Op: "stat", Path: "/proc/self/ns/time", Err: err}
	}
	return here, nil
}

// bootID returns the identifier of this run of the machine.
func bootID() (id [2]uint64, err error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return id, err
	}
	digits := strings.ReplaceAll(strings.TrimSpace(string(text)), "-", "")
	if len(digits) != 32 {
		return id, fmt.Errorf("arena: boot id %q", text)
	}
	for i := range id {
		if id[i], err = strconv.ParseUint(digits[i*16:][:16], 16, 64); err != nil {
			return id, err
		}
	}
	return id, nil
}
