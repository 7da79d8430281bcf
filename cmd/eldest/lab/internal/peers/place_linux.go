package peers

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// enough is how much memory the data of all systems may need: etcd and ZooKeeper allocate their logs in
// segments of 64 MB.
const enough = 6 << 30

// place returns the directory for data, and what kind of storage that is.
func place(dir string) (path, storage string) {
	const memory = "/dev/shm"
	if dir == "" {
		removeAbandoned(memory) // first: it takes memory
	}
	var stat unix.Statfs_t
	switch {
	case dir != "":
		return dir, dir
	case unix.Statfs(memory, &stat) == nil && stat.Type == unix.TMPFS_MAGIC && stat.Bavail*uint64(stat.Bsize) > enough && unix.Access(memory, unix.W_OK) == nil:
		return memory, "memory (tmpfs at " + memory + ")"
	}
	return os.TempDir(), fmt.Sprintf("disk (%s)", os.TempDir())
}
