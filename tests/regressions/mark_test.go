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

// stopMark is how a child knows, at its first look after a stop, that it was stopped:
// its parent counts its stops in a file while it stands still, and the child has that
// file in its memory. The clock does not tell: how long a stop lasts is up to the
// machine, and a busy one makes gaps without any.
type stopMark struct {
	path  string
	word  *uint32 // the child's
	count *uint32 // the parent's
}

const markSize = 4

// newMark makes the mark of a child that was not stopped yet.
func newMark(t testing.TB) stopMark {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mark")
	require.NoError(t, os.WriteFile(path, make([]byte, markSize), 0o600))
	return stopMark{path: path, count: new(uint32)}
}

// stopped counts a stop. The child must stand still.
func (m stopMark) stopped(t testing.TB) {
	t.Helper()
	*m.count++
	file, err := os.OpenFile(m.path, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	require.NoError(t, etcdtest.Err(file.WriteAt(binary.NativeEndian.AppendUint32(nil, *m.count), 0)))
}

// openMark is the child's half.
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

// stops is how often this process was stopped. It is one load from memory, so that
// whoever looks keeps its processor.
func (m stopMark) stops() uint32 { return atomic.LoadUint32(m.word) }
