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

// memberSpace is the space that a member may need: its log and the store.
const memberSpace = 256 << 20

// InMemory is the directory of Linux's usual file system in memory.
const InMemory = "/dev/shm"

// Storage is a directory in which the data of servers gets a subdirectory.
type Storage struct {
	Dir string
	filesystem
}

// filesystem describes a file system.
type filesystem struct {
	name   string // "" if it is unknown
	memory bool
	free   uint64 // bytes available to this process
}

// String returns the kind of storage and its directory in readable form.
func (s Storage) String() string {
	kind := Disk
	if s.memory {
		kind = Memory
	}
	if s.name == "" {
		return fmt.Sprintf("%s (%s), fsync on", kind, s.Dir)
	}
	return fmt.Sprintf("%s (%s at %s), fsync on", kind, s.name, s.Dir)
}

// Settle finds storage for data, see Config.Data, that needs so many bytes if it is in memory. Errors that wrap
// ErrInvalid name the other possible values.
func Settle(data string, need uint64) (Storage, error) {
	first := func(dirs []string, fits func(filesystem) bool) (Storage, bool) {
		for _, dir := range dirs {
			if system, err := inspect(dir); err == nil && fits(system) {
				return Storage{dir, system}, true
			}
		}
		return Storage{}, false
	}
	switch data {
	case Memory, "":
		s, ok := first([]string{InMemory, os.TempDir()}, func(f filesystem) bool { return f.memory && f.free >= need })
		switch {
		case ok:
			return s, nil
		case data == Memory:
			return Storage{}, fmt.Errorf("%w: no file system in memory has %d MB free; use --data %s, or --data DIR", ErrInvalid, need>>20, Disk)
		}
		fallthrough
	case Disk:
		if s, ok := first([]string{os.TempDir(), "/var/tmp"}, func(f filesystem) bool { return !f.memory }); ok {
			return s, nil
		}
		data = os.TempDir() // this directory is in memory, as String then reports
	}
	if info, err := os.Stat(data); err != nil || !info.IsDir() {
		return Storage{}, fmt.Errorf("%w: --data %s is not a directory; it can be %s, %s or a directory that exists", ErrInvalid, data, Memory, Disk)
	}
	dir, err := filepath.Abs(data)
	if err != nil {
		return Storage{}, err
	}
	system, err := inspect(dir)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return Storage{}, err
	}
	return Storage{dir, system}, nil
}
