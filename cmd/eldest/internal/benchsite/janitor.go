package benchsite

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/offspring"
)

// janitor is a process that removes the data should this process not come to it. Data
// that is left in memory is memory that is gone.
type janitor struct {
	cmd   *exec.Cmd
	alive io.Closer // its stdin
}

// hire starts a janitor for a directory. It must not die with us, so no Spawner starts it.
func hire(command Command, dir string) (*janitor, error) {
	cmd := command(Janitor, dir)
	cmd.Env = offspring.Env(os.Environ())
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting what removes the data: %w", err)
	}
	return &janitor{cmd: cmd, alive: stdin}, nil
}

// dismiss ends it, and waits. A nil janitor has nothing to do.
func (j *janitor) dismiss() {
	if j == nil {
		return
	}
	_ = j.alive.Close()
	_ = j.cmd.Wait() // there was nothing left to do
}

// sweepFor bounds how long a janitor tries: members that are being killed may write once
// more.
const sweepFor = 10 * time.Second

// RunJanitor is all that a janitor's process does: it waits for the end of in and removes
// the directory of a cluster. It refuses any other directory.
func RunJanitor(dir string, in io.Reader) error {
	// Ctrl-C goes to all processes of the terminal; this one is to outlive it.
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	if !strings.HasPrefix(filepath.Base(dir), dirPrefix) {
		return fmt.Errorf("%w: %s is no directory of a cluster", ErrInvalid, dir)
	}
	_, _ = io.Copy(io.Discard, in)
	var err error
	for deadline := time.Now().Add(sweepFor); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if err = os.RemoveAll(dir); err != nil {
			continue
		}
		// A member that still runs may put it back once.
		if _, gone := os.Stat(dir); os.IsNotExist(gone) {
			return nil
		}
	}
	return err
}
