package benchsite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Values of Config.Data other than directories.
const (
	Memory = "memory"
	Disk   = "disk"
)

// memberSpace is the space that a member may need: a log that is allocated 64 MB at a time, two
// such segments when it changes to the next one, and the store.
const memberSpace = 256 << 20

// storage is a directory in which a cluster's data gets its own subdirectory.
type storage struct {
	dir string
	filesystem
}

// filesystem describes a file system.
type filesystem struct {
	name   string // "" if it is unknown
	memory bool
	free   uint64 // bytes available to this process
}

// String returns the kind of storage and its directory in readable form.
func (s storage) String() string {
	kind := Disk
	if s.memory {
		kind = Memory
	}
	if s.name == "" {
		return fmt.Sprintf("%s (%s), fsync on", kind, s.dir)
	}
	return fmt.Sprintf("%s (%s at %s), fsync on", kind, s.name, s.dir)
}

// settle finds storage for this many members. Errors that wrap ErrInvalid name the other possible
// values.
func settle(data string, members int) (storage, error) {
	need := uint64(members) * memberSpace
	first := func(dirs []string, fits func(filesystem) bool) (storage, bool) {
		for _, dir := range dirs {
			if system, err := inspect(dir); err == nil && fits(system) {
				return storage{dir, system}, true
			}
		}
		return storage{}, false
	}
	switch data {
	case Memory, "":
		s, ok := first([]string{"/dev/shm", os.TempDir()}, func(f filesystem) bool { return f.memory && f.free >= need })
		switch {
		case ok:
			return s, nil
		case data == Memory:
			return storage{}, fmt.Errorf("%w: no file system in memory has %d MB free; use --data %s, or --data DIR", ErrInvalid, need>>20, Disk)
		}
		fallthrough
	case Disk:
		if s, ok := first([]string{os.TempDir(), "/var/tmp"}, func(f filesystem) bool { return !f.memory }); ok {
			return s, nil
		}
		data = os.TempDir() // this directory is in memory, as String then reports
	}
	if info, err := os.Stat(data); err != nil || !info.IsDir() {
		return storage{}, fmt.Errorf("%w: --data %s is not a directory; it can be %s, %s or a directory that exists", ErrInvalid, data, Memory, Disk)
	}
	dir, err := filepath.Abs(data)
	if err != nil {
		return storage{}, err
	}
	system, err := inspect(dir)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return storage{}, err
	}
	return storage{dir, system}, nil
}
