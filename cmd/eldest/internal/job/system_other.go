//go:build !linux

package job

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Promises lists what this system does not promise, in words.
func Promises() []string {
	return []string{
		"if the keeper is killed, the program runs until eldest notices it, and is not killed if eldest is stopped or killed, too",
		"children of the program that left its process group are not found, and keep running",
		"a keeper that is stopped when eldest is killed stays stopped",
		"the clock may stop during suspend: after it, the program may run past the deadline by the time that the machine was suspended",
	}
}

// Now reads the clock of all deadlines: the same one in all processes of the machine.
func Now() time.Duration { return read(unix.CLOCK_MONOTONIC) }

// alarm does nothing here: poll waits as long as it must, by the clock that it has.
type alarm struct{ fd int }

func newAlarm() (alarm, error) { return alarm{-1}, nil }

// set returns how long poll may wait.
func (a alarm) set(at time.Duration) (limit int) { return untilThen(at) }

// cgroup does nothing here. On Linux it kills all of a program in one step.
type cgroup struct{ path string }

func newCgroup() (*cgroup, error)         { return nil, nil }
func openCgroup(string) (*cgroup, error)  { return nil, nil }
func (*cgroup) join(*syscall.SysProcAttr) {}
func (*cgroup) killAll()                  {}
func (*cgroup) populated() bool           { return false }
func (*cgroup) processes() []int          { return nil }
func (*cgroup) remove()                   {}
func settle()                             {}
func adopt() error                        { return nil }
func self() (string, error)               { return os.Executable() }
func children() (pids []int, sure bool)   { return nil, true } // only children that it has started are known
func below(int) []int                     { return nil }
func woken() *syscall.SysProcAttr         { return &syscall.SysProcAttr{Setpgid: true} }

// mortal are the attributes of a process in a session and a group of its own. There is no
// death signal.
func mortal() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// child is the program. Here its end is noticed only by waiting for it: from then until the owner is
// notified, the ID of its group is free. Systems assign IDs in sequence, so another process can get
// that ID only if tens of thousands of processes are started in that moment.
type child struct {
	pid    int
	gone   bool // it was waited for
	done   bool // its group must not be signaled any more
	status Status
}

func (c *child) ended() bool {
	if w, ok := waitedFor(c.pid); !c.gone && ok {
		c.gone, c.status = true, statusOf(w)
	}
	return c.gone
}

func (c *child) killGroup() {
	if !c.done {
		_ = unix.Kill(-c.pid, unix.SIGKILL)
	}
}

// alone reports whether its group has no other members, and kills those that there are.
func (c *child) alone() bool { return c.done || unix.Kill(-c.pid, unix.SIGKILL) != nil }

func (c *child) wait() Status {
	for !c.ended() {
		time.Sleep(time.Millisecond)
	}
	c.done = true
	return c.status
}
