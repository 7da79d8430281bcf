package etcdtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// AwaitStopped blocks until the kernel reports that a process is stopped, where the kernel can be
// asked.
func AwaitStopped(pid int) error {
	for end := time.Now().Add(callTimeout); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if stopped, err := Stopped(pid); stopped || err != nil {
			return err
		}
	}
	return fmt.Errorf("etcdtest: process %d did not stop within %v", pid, callTimeout)
}

// Stopped reports whether the kernel reports all threads of a process as stopped. It is true where the kernel
// cannot be asked. An error means that there is no such process.
func Stopped(pid int) (bool, error) {
	if _, unasked := os.Stat("/proc/self/stat"); unasked != nil {
		return true, nil //nolint:nilerr // no such kernel
	}
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		return false, fmt.Errorf("etcdtest: there is no process %d: %w", pid, os.ErrProcessDone)
	}
	for _, thread := range threads {
		if state, err := stateIn(thread); err == nil && state != "T" {
			return false, nil // one that cannot be read has ended meanwhile
		}
	}
	return true, nil
}

// awaitEnd blocks until a process that is not a child of this one has ended, with all its threads: its
// ports and files are free then. 0 is no process.
func awaitEnd(pid int) error {
	if pid == 0 {
		return nil
	}
	for end := time.Now().Add(callTimeout); time.Now().Before(end); time.Sleep(time.Millisecond) {
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return nil //nolint:nilerr // there is no such process
		}
		// A process that nobody waits for keeps one thread, as a zombie.
		if state, err := stateIn(fmt.Sprintf("/proc/%d/stat", pid)); err != nil || state == "Z" && len(threads) == 1 {
			return nil //nolint:nilerr // as above
		}
	}
	return fmt.Errorf("etcdtest: process %d did not end within %v", pid, callTimeout)
}

// stateIn reads the kernel's letter for the state of a process or thread from its file.
func stateIn(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	// The line is: pid (name) state ...; the name may contain anything.
	line := string(data)
	state, _, _ := strings.Cut(strings.TrimSpace(line[strings.LastIndex(line, ")")+1:]), " ")
	return state, nil
}
