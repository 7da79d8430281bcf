package keeper

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/eldest-io/eldest/internal/subprocess"
)

// ready is what the keeper reports when it watches the process.
const ready = "ready"

var errEnded = errors.New("its process exited")

// start starts the keeper's process, with the argument for dial as its first order. begun receives
// nil when the keeper watches this process, or the reason why it does not.
func start(with []byte) (k *Keeper, begun chan error, err error) {
	fd, err := subprocess.Open(os.Getpid())
	switch {
	case errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM):
		return nil, nil, err
	case err != nil: // an old kernel, or a sandbox
		return nil, nil, fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	_ = unix.Close(fd)
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = os.Args
	cmd.Env = append(os.Environ(), variable+"="+strconv.Itoa(os.Getpid()))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no signals of a terminal
	orders, reports, err := subprocess.Start(cmd, cmd.Start)
	if err != nil {
		return nil, nil, err
	}
	k = &Keeper{process: cmd.Process, orders: orders, over: make(chan struct{})}
	begun = make(chan error, 1)
	go func() {
		defer close(k.over)
		// The keeper reads this first, and nothing else is written yet.
		if _, err := fmt.Fprintf(orders, "%x\n", with); err != nil {
			k.kill()
		}
		line, err := bufio.NewReader(reports).ReadString('\n')
		_ = reports.Close()
		switch text := strings.TrimSpace(line); {
		case text == ready:
			begun <- nil
		case text != "":
			begun <- errors.New(text)
		case errors.Is(err, io.EOF):
			begun <- errEnded
		default:
			begun <- err
		}
		if k.err = cmd.Wait(); k.err == nil {
			k.err = errEnded
		}
		k.mu.Lock()
		k.hangUp()
		k.mu.Unlock()
	}()
	return k, begun, nil
}
