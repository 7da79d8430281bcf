//go:build unix

package pipe

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Offer writes a line to a pipe of os.Pipe if there is room, and returns an error at once if there is
// none. One of at most 4,096 bytes (PIPE_BUF on Linux) is written in one piece or not at all. A time
// limit would not do: on a busy machine it can have passed before the first attempt.
func Offer(to *os.File, line []byte) error {
	raw, err := to.SyscallConn()
	if err != nil {
		return err
	}
	var written error
	err = raw.Write(func(fd uintptr) bool {
		_, written = unix.Write(int(fd), line)
		return true
	})
	return errors.Join(err, written)
}
