package job

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// cgroup is a control group (version 2) in which the keeper starts processes. Owner and keeper each
// have it open, so that neither needs the other, or a free file descriptor, to kill. A nil cgroup is
// empty.
type cgroup struct {
	path              string
	dir, kill, events int // file descriptors
}

// prefix is the prefix of the names of control groups; the rest is a number.
const prefix = "eldest-run-"

// newCgroup makes a control group below that of this process, and removes leftover ones there.
func newCgroup() (c *cgroup, err error) {
	parent, err := OwnCgroup()
	if err != nil {
		return nil, err
	}
	removeLeftovers(parent)
	// Another process that removes leftovers now may find a new one before it is locked.
	for range 3 {
		if c, err = makeCgroup(parent); err == nil {
			break
		}
	}
	return c, err
}

func makeCgroup(parent string) (*cgroup, error) {
	path, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return nil, err
	}
	c, err := openCgroup(path)
	if err != nil {
		_ = unix.Rmdir(path)
	}
	return c, err
}

func openCgroup(path string) (*cgroup, error) {
	c := &cgroup{path: path, dir: -1, kill: -1, events: -1}
	// The lock marks the group as in use for as long as the descriptor is open: it ends with the
	// processes that have it, however they end. The files are opened after that: if the group was
	// removed just before, they do not exist any more.
	err := c.open(&c.dir, "", unix.O_RDONLY|unix.O_DIRECTORY)
	if err == nil {
		err = os.NewSyscallError("flock", unix.Flock(c.dir, unix.LOCK_SH|unix.LOCK_NB))
	}
	if err == nil {
		err = c.open(&c.kill, "cgroup.kill", unix.O_WRONLY)
	}
	if err == nil {
		err = c.open(&c.events, "cgroup.events", unix.O_RDONLY)
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *cgroup) open(fd *int, file string, how int) (err error) {
	name := filepath.Join(c.path, file)
	if *fd, err = unix.Open(name, how|unix.O_CLOEXEC, 0); err != nil {
		return &os.PathError{Op: "open", Path: name, Err: err}
	}
	return nil
}

// removeLeftovers removes the control groups of owners and keepers that were killed together: those
// below parent that no process has locked, and that contain no process.
func removeLeftovers(parent string) {
	entries, _ := os.ReadDir(parent)
	for _, entry := range entries {
		number, ours := strings.CutPrefix(entry.Name(), prefix)
		if ours && entry.IsDir() && number != "" && strings.Trim(number, "0123456789") == "" {
			removeLeftover(filepath.Join(parent, entry.Name()))
		}
	}
}

func removeLeftover(path string) {
	dir, err := os.Open(path)
	if err != nil {
		return
	}
	defer func() { _ = dir.Close() }()
	if unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return // it is in use: its program may not have been started yet
	}
	events, _ := os.ReadFile(filepath.Join(path, "cgroup.events"))
	if bytes.Contains(events, []byte("populated 0")) {
		rmdir(path)
	}
}

// OwnCgroup returns the directory of the control group that this process is in.
func OwnCgroup() (string, error) {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	return findCgroup(string(groups), string(mounts))
}

// findCgroup finds the directory in the kernel's lists of the groups and the mounts of a process.
func findCgroup(groups, mounts string) (string, error) {
	for line := range strings.Lines(groups) {
		group, found := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::")
		if !found {
			continue
		}
		for mount := range strings.Lines(mounts) {
			// number, parent, device, root, where, options ... - type ...
			fields, kind, _ := strings.Cut(mount, " - ")
			words := strings.Fields(fields)
			if !strings.HasPrefix(kind, "cgroup2 ") || len(words) < 5 {
				continue
			}
			below, err := filepath.Rel(unescape(words[3]), group)
			// A group outside of the process's cgroup namespace has /.. in its path.
			if err == nil && filepath.IsLocal(below) && filepath.Clean(group) == group {
				return filepath.Join(unescape(words[4]), below), nil
			}
		}
		return "", fmt.Errorf("control group %s is not mounted", group)
	}
	return "", errors.New("there are no control groups of version 2")
}

// unescape decodes the octal numbers of mountinfo.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace

// join makes a process start in the group.
func (c *cgroup) join(attr *syscall.SysProcAttr) {
	if c != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, c.dir
	}
}

// killAll kills every process in it.
func (c *cgroup) killAll() {
	if c != nil {
		_, _ = unix.Write(c.kill, []byte("1"))
	}
}

// populated reports whether a process in it, or in a group below it, has not ended.
func (c *cgroup) populated() bool {
	if c == nil {
		return false
	}
	var buffer [256]byte
	n, _ := unix.Pread(c.events, buffer[:], 0) // fails once it is removed
	return bytes.Contains(buffer[:max(n, 0)], []byte("populated 1"))
}

// processes lists the processes in it, but not those in groups below it.
func (c *cgroup) processes() (pids []int) {
	if c == nil {
		return nil
	}
	data, _ := os.ReadFile(filepath.Join(c.path, "cgroup.procs"))
	return numbers(string(data))
}

// remove removes it, with the groups that the program may have made below it, unless a process is
// left there. It must not be used after that.
func (c *cgroup) remove() {
	if c != nil {
		c.close()
		rmdir(c.path)
	}
}

func (c *cgroup) close() {
	for _, fd := range []int{c.dir, c.kill, c.events} {
		_ = unix.Close(fd)
	}
}

// rmdir removes a directory and those below it. Other processes may remove it meanwhile.
func rmdir(path string) {
	entries, _ := os.ReadDir(path)
	for _, entry := range entries {
		if entry.IsDir() {
			rmdir(filepath.Join(path, entry.Name()))
		}
	}
	_ = unix.Rmdir(path)
}
