package job

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// SpecFD is the file descriptor from which a keeper reads its specification.
const SpecFD = specFD

var (
	AskAll     = askAll
	Children   = children
	FindCgroup = findCgroup
)

// Unread is how many bytes of orders the keeper has not read.
func (j *Job) Unread(t *testing.T) int {
	t.Helper()
	raw, err := j.orders.SyscallConn()
	require.NoError(t, err)
	var n int
	require.NoError(t, raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }))
	require.NoError(t, err)
	return n
}
