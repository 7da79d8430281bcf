//go:build unix

package job

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// listen handles the keeper's reports until there can be none any more.
func (j *Job) listen(reports *os.File) {
	scanner := bufio.NewScanner(reports)
	for scanner.Scan() {
		var r report
		if json.Unmarshal(scanner.Bytes(), &r) != nil {
			break
		}
		j.hear(r)
	}
	_ = reports.Close()
	j.bury()
}

func (j *Job) hear(r report) {
	switch {
	case r.Started != 0:
		j.mu.Lock()
		j.group, j.pid = r.Started, r.Started
		j.mu.Unlock()
		j.attend(r.Started)
		j.started <- nil
	case r.Late:
		j.started <- ErrLate
	case r.Refused != "":
		j.started <- errors.New(r.Refused)
	case r.Ungrouped != "":
		j.mu.Lock()
		j.ungrouped = errors.New(r.Ungrouped)
		j.mu.Unlock()
	case r.Warned:
		close(j.warned)
	case r.Hook != nil:
		result := HookResult{Status: r.Hook.Status, TimedOut: r.Hook.TimedOut}
		if r.Hook.Error != "" {
			result.Err = errors.New(r.Hook.Error)
		}
		j.hooked(r.Hook.ID, result)
	case r.Cleared:
		j.mu.Lock()
		j.group = 0
		j.mu.Unlock()
		_ = j.order(order{Reap: true})
	case r.Reaped != nil:
		j.mu.Lock()
		j.status = *r.Reaped
		j.mu.Unlock()
		close(j.over)
	}
}

// attention is how long a keeper may take to notice that the program has ended.
const attention = 5 * time.Second

// attend has a keeper killed that does not notice the program's end: who stands still would
// else keep the owner waiting for a program that is none any more.
func (j *Job) attend(program int) {
	ended, err := endOf(program)
	if err != nil {
		return // not to be had here
	}
	j.launching.Go(func() {
		ended()
		timer := time.NewTimer(attention)
		defer timer.Stop()
		select {
		case <-j.over:
		case <-timer.C:
			j.killKeeper()
		}
	})
}

func (j *Job) hooked(id int, result HookResult) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if waiting := j.hooks[id]; waiting != nil {
		delete(j.hooks, id)
		waiting <- result
	}
}

// howKeeperEnded says it of one that was waited for. The caller holds mu.
func (j *Job) howKeeperEnded() error {
	how := "for an unknown reason"
	if j.dismissed {
		how = "it did not listen, and was killed"
	} else if state := j.keeper.ProcessState; state != nil { // nil: waited for by somebody else
		how = statusOf(unix.WaitStatus(state.Sys().(syscall.WaitStatus))).String()
	}
	return fmt.Errorf("%w: process %d, %s", ErrKeeper, j.keeper.Process.Pid, how)
}

// bury deals with what a keeper that is gone has left: nothing, if it went in good order.
// The program has died with it where there is a death signal; its children have become
// ours.
func (j *Job) bury() {
	j.killGroup()
	_ = j.keeper.Process.Kill()
	j.mu.Lock()
	j.buried = true
	j.mu.Unlock()
	_ = j.keeper.Wait() // it has handed its children over when this returns
	j.killGroup()
	j.mu.Lock()
	j.group = 0 // what is left of it is found as a child
	j.mu.Unlock()
	status := Status{Unknown: true}
	var stuck error
	for pause := (pauses{}); ; {
		j.killGroup()
		left := j.cgroup.populated()
		below, sure := children()
		left = left || !sure
		below = slices.DeleteFunc(below, func(pid int) bool { return slices.Contains(j.before, pid) })
		for _, pid := range below {
			// Also after one that has ended: what it has left is ours only now.
			left = true
			if w, ok := waitedFor(pid); !ok {
				_ = unix.Kill(pid, unix.SIGKILL)
			} else if pid == j.Pid() {
				status = statusOf(w)
			}
		}
		if !left {
			break
		}
		if !pause.rest() {
			stuck = whatIsLeft(append(below, j.cgroup.processes()...))
			break
		}
	}
	j.mu.Lock()
	j.left = stuck
	j.cgroup.remove()
	j.cgroup = nil
	for id, waiting := range j.hooks {
		delete(j.hooks, id)
		waiting <- HookResult{Err: ErrKeeper}
	}
	select {
	case <-j.over:
	default:
		j.status = status
		if !j.closing {
			j.lost = j.howKeeperEnded()
		}
		close(j.over)
	}
	j.mu.Unlock()
	close(j.starts)
	close(j.gone)
}
