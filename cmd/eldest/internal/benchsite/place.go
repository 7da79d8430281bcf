package benchsite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Where a cluster's data may lie, beside directories.
const (
	Memory = "memory"
	Disk   = "disk"
)

// dirPrefix is what the directories begin with that are made, and removed, here.
const dirPrefix = "eldest-bench-"

// room is what a member may need: a log that is allocated 64 MB at a time, two of them at
// a change, and the store.
const room = 256 << 20

// place is a directory for a cluster's data.
type place struct {
	// dir is ours, below parent.
	dir, parent string
	system      filesystem
}

// String is for people: what kind of storage it is, and where.
func (p place) String() string {
	kind := Disk
	if p.system.memory {
		kind = Memory
	}
	if p.system.name == "" {
		return fmt.Sprintf("%s (%s), fsync on", kind, p.parent)
	}
	return fmt.Sprintf("%s (%s at %s), fsync on", kind, p.system.name, p.parent)
}

func (p place) remove() error { return os.RemoveAll(p.dir) }

// settle makes a directory for the data of so many members. Errors that wrap ErrInvalid
// say what else to ask for.
func settle(data string, members int) (place, error) {
	switch data {
	case Memory, "":
		where, ok := inMemory(uint64(members) * room)
		if ok {
			return where, nil
		}
		if data == Memory {
			return place{}, fmt.Errorf("%w: there is no file system in memory here with %d MB free; use --data %s, or --data DIR",
				ErrInvalid, members*room>>20, Disk)
		}
		return onDisk()
	case Disk:
		return onDisk()
	}
	if info, err := os.Stat(data); err != nil || !info.IsDir() {
		return place{}, fmt.Errorf("%w: --data %s is no directory; it can be %s, %s or a directory that exists", ErrInvalid, data, Memory, Disk)
	}
	return in(data)
}

// inMemory finds a file system in memory with enough room.
func inMemory(need uint64) (place, bool) {
	for _, parent := range []string{"/dev/shm", os.TempDir()} {
		system, err := inspect(parent)
		if err != nil || !system.memory || system.free < need {
			continue
		}
		if where, err := in(parent); err == nil {
			return where, true
		}
	}
	return place{}, false
}

// onDisk is the first directory for temporary files that is not in memory; if all are,
// the usual one, and String says so.
func onDisk() (place, error) {
	for _, parent := range []string{os.TempDir(), "/var/tmp"} {
		if system, err := inspect(parent); err == nil && !system.memory {
			return in(parent)
		}
	}
	return in(os.TempDir())
}

// in makes the directory.
func in(parent string) (place, error) {
	parent, err := filepath.Abs(parent)
	if err != nil {
		return place{}, err
	}
	dir, err := os.MkdirTemp(parent, dirPrefix)
	if err != nil {
		return place{}, err
	}
	system, err := inspect(dir)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return place{}, errors.Join(err, os.RemoveAll(dir))
	}
	return place{dir: dir, parent: parent, system: system}, nil
}

// filesystem is what is known of one.
type filesystem struct {
	name   string // "" if it is not known
	memory bool
	free   uint64 // bytes that we may use
}
