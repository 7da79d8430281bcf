package benchsite

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// systems are the file systems on which benchmarks commonly run, by Linux's magic numbers.
var systems = map[int64]filesystem{
	unix.TMPFS_MAGIC:           {name: "tmpfs", memory: true},
	unix.RAMFS_MAGIC:           {name: "ramfs", memory: true},
	unix.EXT4_SUPER_MAGIC:      {name: "ext4"}, // also ext2 and ext3
	unix.XFS_SUPER_MAGIC:       {name: "xfs"},
	unix.BTRFS_SUPER_MAGIC:     {name: "btrfs"},
	unix.OVERLAYFS_SUPER_MAGIC: {name: "overlayfs"},
	unix.NFS_SUPER_MAGIC:       {name: "nfs"},
	unix.V9FS_MAGIC:            {name: "9p"},
	0x2fc12fc1:                 {name: "zfs"},
}

// inspect returns the file system of a directory, to which this process must be able to write.
func inspect(path string) (filesystem, error) {
	var stat unix.Statfs_t
	if err := errors.Join(unix.Statfs(path, &stat), unix.Access(path, unix.W_OK)); err != nil {
		return filesystem{}, fmt.Errorf("%s: %w", path, err)
	}
	system, ok := systems[int64(stat.Type)] //nolint:unconvert // its size differs between architectures
	if !ok {
		system.name = fmt.Sprintf("file system %#x", stat.Type)
	}
	system.free = stat.Bavail * uint64(stat.Bsize)
	return system, nil
}
