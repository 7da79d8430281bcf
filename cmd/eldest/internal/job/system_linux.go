package job

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Promises lists what this system does not promise, in words; empty here.
func Promises() []string { return nil }

// Now reads the clock of all deadlines: the same one in all processes of the machine.
func Now() time.Duration { return read(unix.CLOCK_BOOTTIME) }

// alarm is a descriptor that is readable once Now has reached a reading. It wakes the keeper after a
// suspend as well, unlike the timeout of poll.
type alarm struct{ fd int }

func newAlarm() (alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	return alarm{fd}, err
}

// set sets the reading; 0 is never. It returns how long poll may wait.
func (a alarm) set(at time.Duration) (limit int) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(at))}
	if unix.TimerfdSettime(a.fd, unix.TFD_TIMER_ABSTIME, &spec, nil) != nil {
		return untilThen(at) // cannot happen for a clock that could be created
	}
	return -1
}

// settle makes the calling process adopt the orphans among its descendants, and gives it a name of
// its own: if a user who kills all processes named eldest killed the keeper, too, no process would
// adopt the program's children.
func settle() {
	_ = adopt()
	_ = os.WriteFile("/proc/self/comm", []byte("keeper"), 0)
}

// adopt makes the calling process the parent of orphans among its descendants.
func adopt() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// mortal are the attributes of a process that dies with its parent and is the leader of a session and
// a process group of its own. In the session of a terminal, but not in its foreground group, it would
// be stopped, and lead for ever, as soon as it read from the terminal or set it up.
func mortal() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL}
}

// woken are the attributes of a keeper: a process group of its own, because the signals of a terminal
// are for the owner, and SIGCONT as the signal for the owner's death.
func woken() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGCONT}
}

// self is the executable of this process, even if its file was replaced.
func self() (string, error) { return "/proc/self/exe", nil }

// children lists the children of this process, including those that have ended. If sure is false, the
// list may be incomplete, and a caller that wants none to be left has to try again: an empty list is
// no proof when, for instance, the table of files is full.
func children() (pids []int, sure bool) { return childrenOf(os.Getpid()) }

// below lists the descendants of a process.
func below(pid int) []int {
	all, _ := childrenOf(pid)
	for i := 0; i < len(all); i++ {
		more, _ := childrenOf(all[i])
		all = append(all, more...)
	}
	return all
}

// childrenOf lists the children of a process; none if there is no such process.
func childrenOf(parent int) (pids []int, sure bool) {
	if !listed() {
		return askAll(parent)
	}
	threads := "/proc/" + strconv.Itoa(parent) + "/task"
	entries, err := os.ReadDir(threads)
	sure = err == nil || over(err)
	for _, thread := range entries {
		data, err := os.ReadFile(filepath.Join(threads, thread.Name(), "children"))
		sure = sure && (err == nil || over(err))
		pids = append(pids, numbers(string(data))...)
	}
	return pids, sure
}

func numbers(text string) (all []int) {
	for word := range strings.FieldsSeq(text) {
		if n, err := strconv.Atoi(word); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// over reports whether the error means that the process or thread has ended.
func over(err error) bool { return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) }

// listed reports whether the kernel lists children; most kernels are built so.
var listed = sync.OnceValue(func() bool {
	_, err := os.Stat("/proc/thread-self/children")
	return err == nil
})

// askAll lists the children of a process by reading the parent of every process.
func askAll(parent int) (pids []int, sure bool) {
	entries, err := os.ReadDir("/proc")
	sure = err == nil
	for _, entry := range entries {
		child, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue // it is no process
		}
		data, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "stat"))
		if err != nil {
			sure = sure && over(err)
			continue
		}
		// pid (name) state parent ...; the name may contain anything.
		end := strings.LastIndex(string(data), ") ")
		fields := strings.Fields(string(data[end+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			pids = append(pids, child)
		}
	}
	return pids, sure
}

// child is the program. It is waited for in two steps.
type child struct {
	pid  int
	gone bool // it was waited for, and another process may have its ID
}

// ended reports whether it has ended. It keeps its ID, and that of its group.
func (c *child) ended() bool {
	if c.gone {
		return true
	}
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, c.pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo != 0
}

// killGroup kills it, and all of its group.
func (c *child) killGroup() {
	if !c.gone {
		_ = unix.Kill(-c.pid, unix.SIGKILL)
	}
}

// alone reports whether its group has no other members. On Linux they are adopted, and found as
// children.
func (c *child) alone() bool { return true }

// wait waits for the end and releases the ID.
func (c *child) wait() Status {
	var w unix.WaitStatus
	c.gone = true
	for {
		switch pid, err := unix.Wait4(c.pid, &w, 0, nil); {
		case pid == c.pid:
			return statusOf(w)
		case err != nil && err != unix.EINTR:
			return Status{Unknown: true}
		}
	}
}
