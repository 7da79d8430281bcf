package regressions

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// stopMark tells a child, at its first check after a stop, that it was stopped: its parent counts
// the stops in a file while the child is stopped, and the child has mapped that file into its
// memory. The clock cannot show a stop: its duration depends on the machine, and a busy machine
// causes gaps without any stop.
type stopMark struct {
	path  string
	word  *uint32 // the child's
	count *uint32 // the parent's
}

const markSize = 4

// newMark makes the mark of a child that has not been stopped yet.
func newMark(t testing.TB) stopMark {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mark")
	require.NoError(t, os.WriteFile(path, make([]byte, markSize), 0o600))
	return stopMark{path: path, count: new(uint32)}
}

// stopped counts a stop. The child must be stopped.
func (m stopMark) stopped(t testing.TB) {
	t.Helper()
	*m.count++
	file, err := os.OpenFile(m.path, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	require.NoError(t, etcdtest.Err(file.WriteAt(binary.NativeEndian.AppendUint32(nil, *m.count), 0)))
}

// openMark opens the mark in the child.
func openMark(path string) stopMark {
	file, err := os.Open(path)
	if err != nil {
		panic(err)
	}
	page, err := syscall.Mmap(int(file.Fd()), 0, markSize, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	return stopMark{path: path, word: (*uint32)(unsafe.Pointer(&page[0]))}
}

// stops returns how often this process was stopped. It is one load from memory, so that a goroutine
// that calls it does not yield its processor.
func (m stopMark) stops() uint32 { return atomic.LoadUint32(m.word) }
