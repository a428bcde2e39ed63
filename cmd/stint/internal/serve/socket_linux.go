package serve

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// around returns a path to the socket by an open descriptor of its directory, which stays
// open until the process ends.
func around(dir, path string) (string, error) {
	if len(path) >= unix.PathMax {
		return "", tooLong(path)
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("%s: %w", dir, err)
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", fd, SocketName), nil
}
