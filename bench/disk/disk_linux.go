package disk

import (
	"fmt"
	"os"
	"syscall"
)

// fileSystemNames are the common ones, by the numbers of statfs(2).
var fileSystemNames = map[int64]string{
	0x01021994: "tmpfs",
	0x858458f6: "ramfs",
	0x794c7630: "overlayfs",
	0xef53:     "ext4",
	0x58465342: "xfs",
	0x9123683e: "btrfs",
	0x2fc12fc1: "zfs",
	0xf2f52010: "f2fs",
	0x6969:     "nfs",
}

// FileSystem is what kind of file system a directory is on, or "unknown".
func FileSystem(dir string) string {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return "unknown"
	}
	number := int64(uint32(s.Type)) // its size depends on the architecture
	if name, ok := fileSystemNames[number]; ok {
		return name
	}
	return fmt.Sprintf("file system %#x", number)
}

// Settle returns when all writes of all processes are on the disk, so that the
// subject that is measured next does not pay for them.
func Settle() { syscall.Sync() }

func syncData(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
