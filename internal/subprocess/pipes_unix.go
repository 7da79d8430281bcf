//go:build unix

package subprocess

import (
	"bytes"
	"errors"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// The subprocess's ends of the two pipes, as exec passes them on.
const (
	OrdersFD  = 3
	ReportsFD = 4
)

// Start starts cmd by calling start, with the subprocess's ends as its first extra files. It
// returns the ends of this process, which the caller must close.
func Start(cmd *exec.Cmd, start func() error) (orders, reports *os.File, err error) {
	theirOrders, orders, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = theirOrders.Close() }()
	reports, theirReports, err := os.Pipe()
	if err != nil {
		_ = orders.Close()
		return nil, nil, err
	}
	defer func() { _ = theirReports.Close() }()
	cmd.ExtraFiles = append([]*os.File{theirOrders, theirReports}, cmd.ExtraFiles...)
	if err := start(); err != nil {
		_, _ = orders.Close(), reports.Close()
		return nil, nil, err
	}
	return orders, reports, nil
}

// ErrNotStarted is returned by Inherit in a process that Start did not start.
var ErrNotStarted = errors.New("this process was not started by package subprocess")

// Inherit prepares the subprocess's ends: they do not block, and are not passed on to processes
// that the subprocess starts.
func Inherit() error {
	for _, fd := range []int{OrdersFD, ReportsFD} {
		var stat unix.Stat_t
		if err := unix.Fstat(fd, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFIFO {
			return ErrNotStarted
		}
		unix.CloseOnExec(fd)
		if err := unix.SetNonblock(fd, true); err != nil {
			return err
		}
	}
	return nil
}

// Orders reads the orders. The zero value is ready for use.
type Orders struct{ partial []byte }

// Read returns the lines that have arrived, without their ends. It does not block. more is false if
// no further line can arrive.
func (o *Orders) Read() (lines [][]byte, more bool, err error) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := unix.Read(OrdersFD, buffer)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return lines, true, nil
		case err != nil || n == 0:
			return lines, false, err
		}
		o.partial = append(o.partial, buffer[:n]...)
		for {
			line, rest, found := bytes.Cut(o.partial, []byte{'\n'})
			if !found {
				break
			}
			lines, o.partial = append(lines, line), rest
		}
	}
}

// Offer writes a line to a pipe of os.Pipe if there is room for it, and otherwise returns an error
// at once. A line of at most 4,096 bytes (PIPE_BUF on Linux) is written in one piece or not at all.
// A write deadline is not suitable: on a busy machine it can have passed before the first attempt.
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
