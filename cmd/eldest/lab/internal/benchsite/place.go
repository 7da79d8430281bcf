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

// room is what a member may need: a log that is allocated 64 MB at a time, two of them at
// a change, and the store.
const room = 256 << 20

// place is a directory in which a cluster's data gets one of its own.
type place struct {
	dir    string
	system filesystem
}

// String is for people: what kind of storage it is, and where.
func (p place) String() string {
	kind := Disk
	if p.system.memory {
		kind = Memory
	}
	if p.system.name == "" {
		return fmt.Sprintf("%s (%s), fsync on", kind, p.dir)
	}
	return fmt.Sprintf("%s (%s at %s), fsync on", kind, p.system.name, p.dir)
}

// settle finds a place for the data of so many members. Errors that wrap ErrInvalid
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
	for _, dir := range []string{"/dev/shm", os.TempDir()} {
		if system, err := inspect(dir); err == nil && system.memory && system.free >= need {
			return place{dir, system}, true
		}
	}
	return place{}, false
}

// onDisk is the first directory for temporary files that is not in memory; if all are,
// the usual one, and String says so.
func onDisk() (place, error) {
	for _, dir := range []string{os.TempDir(), "/var/tmp"} {
		if system, err := inspect(dir); err == nil && !system.memory {
			return place{dir, system}, nil
		}
	}
	return in(os.TempDir())
}

// in is a directory that is asked for by name, or the last resort.
func in(dir string) (place, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return place{}, err
	}
	system, err := inspect(dir)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return place{}, err
	}
	return place{dir, system}, nil
}

// filesystem is what is known of one.
type filesystem struct {
	name   string // "" if it is not known
	memory bool
	free   uint64 // bytes that we may use
}
