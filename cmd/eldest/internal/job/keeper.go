//go:build unix

package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/eldest-io/eldest/internal/pidfd"
)

// The keeper's ends of the two pipes, as exec hands them over.
const (
	ordersFD  = 3
	reportsFD = 4
)

// keeper is the state of the keeper's process. One goroutine owns it: nothing in it waits
// for anything but poll, so that nothing can come between a deadline and the kill.
type keeper struct {
	alarm   alarm
	partial []byte // of an order
	starts  chan func()
	wake    int     // readable when a child may have ended
	cgroup  *cgroup // nil where there is none

	owner    int // its pidfd; -1 where there is none
	prepare  func(with []byte) (farewell func() error)
	farewell func() error // nil: nothing
	// dismissed says that the owner lives on.
	dismissed bool

	deadline Deadline
	// stopBy is when the program is killed whatever the deadline says; 0 is never.
	stopBy time.Duration
	// program is nil before its start. Invariant: waited for after the owner's Reap, or
	// when there is no owner any more.
	program *child
	hooks   map[int]*hook // by process ID
	// cleared says that nothing runs and nothing will; stuck is not nil if something was
	// left after all.
	cleared bool
	stuck   error
}

// hook is a process beside the program.
type hook struct {
	id       int
	until    time.Duration // 0 is without a limit
	timedOut bool
}

// Keep is the keeper's whole life: it takes orders until the owner is gone, and ends with
// nothing left below it, or with an error that says what could not be killed. Only a process
// that Start started may call it, first thing.
//
// prepare is called with what Job.SetFarewell was given, each time. What it returned last is
// called if the owner has died without Close, is dead, and nothing of the program runs any more; never
// else. Keep returns its error.
func Keep(prepare func(with []byte) (farewell func() error)) error {
	unix.CloseOnExec(ordersFD)
	unix.CloseOnExec(reportsFD)
	for _, fd := range []int{ordersFD, reportsFD} {
		var stat unix.Stat_t
		if err := unix.Fstat(fd, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFIFO {
			return errors.New("this command is the part of \"eldest run\" that watches over the program; it is started by it and by nobody else")
		}
	}
	// A report that nobody reads must not hold up a kill.
	if err := unix.SetNonblock(reportsFD, true); err != nil {
		return err
	}
	settle()
	// Who stops a whole group of processes, as service managers do, means the program's
	// end in good order, which is the owner's business; what is caught is not ignored
	// by the processes that are started.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2,
		unix.SIGPIPE, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	alarm, err := newAlarm()
	if err != nil {
		return err
	}
	wake, err := wakeups()
	if err != nil {
		return err
	}
	k := &keeper{alarm: alarm, wake: wake, starts: starter(), hooks: make(map[int]*hook), prepare: prepare}
	if k.owner, err = pidfd.Parent(os.Getppid()); err != nil {
		k.owner = -1 // not to be had here: nobody is bidden farewell
	}
	for k.step() {
	}
	if k.stuck == nil {
		k.stuck = k.clear()
	}
	k.cgroup.remove()
	if k.stuck != nil || k.farewell == nil || k.dismissed || k.owner < 0 || !pidfd.Dead(k.owner, pidfd.Dying) {
		return k.stuck
	}
	return k.farewell()
}

// starter returns where processes are started: on one system thread that lives as long as
// the process, because the kernel ties the death signal to the thread and not to the
// process, and Go ends threads as it likes.
func starter() chan func() {
	starts := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range starts {
			start()
		}
	}()
	return starts
}

// wakeups returns a descriptor that is readable after the end of a child.
func wakeups() (int, error) {
	var pipe [2]int
	if err := unix.Pipe(pipe[:]); err != nil {
		return 0, err
	}
	for _, fd := range pipe {
		unix.CloseOnExec(fd)
		if err := unix.SetNonblock(fd, true); err != nil {
			return 0, err
		}
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	go func() {
		for range ended {
			_, _ = unix.Write(pipe[1], []byte{0}) // a full pipe wakes as well
		}
	}()
	return pipe[0], nil
}

// step waits for something to do and does it. It returns false when the owner is gone, or
// has to deal with what this process could not kill.
func (k *keeper) step() bool {
	limit := k.alarm.set(k.next())
	fds := []unix.PollFd{{Fd: ordersFD, Events: unix.POLLIN}, {Fd: int32(k.wake), Events: unix.POLLIN}, {Fd: int32(k.alarm.fd), Events: unix.POLLIN}}
	if _, err := unix.Poll(fds, limit); err != nil && !errors.Is(err, unix.EINTR) {
		return false
	}
	if fds[1].Revents != 0 {
		var drained [64]byte
		_, _ = unix.Read(k.wake, drained[:])
	}
	// Orders first: a keeper that was stopped for a while finds newer deadlines there,
	// and need not kill what is in good order.
	if fds[0].Revents != 0 && !k.read() {
		return false
	}
	k.collect()
	k.check(Now())
	return k.stuck == nil
}

// next is the reading at which something is due; 0 is never.
func (k *keeper) next() time.Duration {
	var at time.Duration
	sooner := func(t time.Duration) {
		if t > 0 && (at == 0 || t < at) {
			at = t
		}
	}
	if !k.cleared && k.deadline.Kill > 0 {
		sooner(k.deadline.Kill)
		if k.warnable() {
			sooner(k.deadline.Term)
		}
	}
	if k.program != nil && !k.cleared {
		sooner(k.stopBy)
	}
	for _, h := range k.hooks {
		if !h.timedOut {
			sooner(h.until)
		}
	}
	return at
}

// warnable reports whether the program would be sent SIGTERM as the deadline nears.
func (k *keeper) warnable() bool {
	return k.program != nil && k.stopBy == 0 && k.deadline.Term < k.deadline.Kill
}

// check does what is due at the reading now.
func (k *keeper) check(now time.Duration) {
	for pid, h := range k.hooks {
		if h.until > 0 && now >= h.until && !h.timedOut {
			h.timedOut = true
			_ = unix.Kill(-pid, unix.SIGKILL)
		}
	}
	if k.cleared {
		return
	}
	due := k.deadline.Kill > 0 && now >= k.deadline.Kill
	if k.program != nil {
		due = due || k.stopBy > 0 && now >= k.stopBy || k.program.ended()
	}
	if due {
		k.finish()
		return
	}
	if k.deadline.Kill > 0 && now >= k.deadline.Term && k.warnable() {
		// From here on there is no way back: a program that was told to end does so,
		// or is killed, even if the lease is renewed after all.
		k.stopBy = k.deadline.Kill
		Signal(k.program.pid, unix.SIGTERM)
		k.report(report{Warned: true})
	}
}

// read takes what orders there are. It returns false at the end of the pipe.
func (k *keeper) read() bool {
	buffer := make([]byte, 64<<10)
	n, err := unix.Read(ordersFD, buffer)
	if err != nil {
		return errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN)
	}
	if n == 0 {
		return false
	}
	k.partial = append(k.partial, buffer[:n]...)
	var orders []order
	for {
		one, rest, found := bytes.Cut(k.partial, []byte{'\n'})
		if !found {
			break
		}
		k.partial = rest
		var o order
		if json.Unmarshal(one, &o) != nil {
			return false // a broken pipe of orders is as good as none
		}
		orders = append(orders, o)
	}
	// A keeper that was stopped finds what it was to start and then was not: by now
	// somebody else may lead.
	over := slices.ContainsFunc(orders, func(o order) bool { return o.Kill })
	for _, o := range orders {
		if over && o.Start != nil {
			k.refuse(o.Start)
			continue
		}
		k.obey(o)
	}
	return true
}

// refuse says that a process is not started any more: whoever waits for it must hear of it.
func (k *keeper) refuse(s *startOrder) {
	const why = "the keeper's work is done"
	if s.ID == 0 {
		k.report(report{Refused: why})
		return
	}
	k.report(report{Hook: &hookReport{ID: s.ID, Error: why}})
}

func (k *keeper) obey(o order) {
	switch {
	case o.Cgroup != nil:
		var err error
		if k.cgroup, err = openCgroup(string(o.Cgroup)); err != nil {
			k.report(report{Ungrouped: err.Error()})
		}
	case o.Deadline != nil:
		k.deadline = *o.Deadline
	case o.Start != nil && o.Start.ID == 0:
		k.startProgram(o.Start)
	case o.Start != nil:
		k.startHook(o.Start)
	case o.StopBy > 0:
		k.stopBy = o.StopBy
	case o.Kill && !k.cleared:
		k.finish()
	case o.Farewell != nil:
		k.farewell = k.prepare(o.Farewell)
	case o.Dismissed:
		k.dismissed = true
	case o.Reap:
		var status Status
		if k.program != nil {
			status = k.program.wait()
		}
		k.report(report{Reaped: &status})
	}
}

func (k *keeper) startProgram(s *startOrder) {
	now := Now()
	switch {
	case k.cleared || k.program != nil:
		k.refuse(s)
		return
	case k.deadline.Kill == 0 || now >= k.deadline.Term:
		k.report(report{Late: true})
		return
	}
	pid, err := k.start(s)
	if err != nil {
		k.report(report{Refused: fmt.Sprintf("start %s: %v", s.Path, err)})
		return
	}
	k.program = &child{pid: pid}
	k.report(report{Started: pid})
}

func (k *keeper) startHook(s *startOrder) {
	if k.cleared && k.program != nil {
		k.refuse(s)
		return
	}
	pid, err := k.start(s)
	if err != nil {
		k.report(report{Hook: &hookReport{ID: s.ID, Error: fmt.Sprintf("start %s: %v", s.Path, err)}})
		return
	}
	h := &hook{id: s.ID}
	if s.Limit > 0 {
		h.until = Now() + s.Limit
	}
	k.hooks[pid] = h
}

// start starts a process as the head of a process group of its own, in the control group if
// that is possible. The program alone has the keeper's stdin, which is its owner's: a hook
// must not eat what is meant for it.
func (k *keeper) start(s *startOrder) (pid int, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = null.Close() }()
	files := []uintptr{0, 1, 2}
	if s.ID != 0 {
		files[0] = null.Fd()
	}
	if s.Mute {
		files[1] = null.Fd()
	}
	fork := func(attr *syscall.SysProcAttr) {
		done := make(chan struct{})
		k.starts <- func() {
			defer close(done)
			pid, err = syscall.ForkExec(string(s.Path), asText(s.Args), &syscall.ProcAttr{Env: asText(s.Env), Files: files, Sys: attr})
		}
		<-done
	}
	attr := mortal()
	k.cgroup.join(attr)
	fork(attr)
	if err == nil || k.cgroup == nil {
		return pid, err
	}
	// The error may be of the program as well as of the control group.
	why := err
	if fork(mortal()); err == nil {
		k.report(report{Ungrouped: why.Error()})
	}
	return pid, err
}

// collect waits for whoever has ended below, other than the program.
func (k *keeper) collect() {
	for pid, h := range k.hooks {
		if w, ok := waitedFor(pid); ok {
			delete(k.hooks, pid)
			k.report(report{Hook: &hookReport{ID: h.id, Status: statusOf(w), TimedOut: h.timedOut}})
		}
	}
	below, _ := children() // what is not seen now is seen later
	for _, pid := range below {
		if !k.knows(pid) {
			_, _ = waitedFor(pid)
		}
	}
}

func (k *keeper) knows(pid int) bool {
	return k.hooks[pid] != nil || k.program != nil && !k.program.gone && k.program.pid == pid
}

// finish kills all that is below, and tells the owner when nothing runs any more.
func (k *keeper) finish() {
	if k.stuck = k.clear(); k.stuck == nil {
		k.report(report{Cleared: true})
	}
}

// clear kills all that is below, and returns nil when nothing runs any more, or else, after
// some time, what is left.
func (k *keeper) clear() error {
	k.cleared = true
	if k.program != nil {
		k.program.killGroup()
	}
	for pid := range k.hooks {
		_ = unix.Kill(-pid, unix.SIGKILL)
	}
	for pause := (pauses{}); ; {
		k.cgroup.killAll()
		k.collect()
		// Who has ended, before who is there: what the program leaves is ours only with its
		// end, and a list that was read before that does not have it.
		left := len(k.hooks) > 0 || k.program != nil && !k.program.ended() || k.cgroup.populated()
		below, sure := children()
		left = left || !sure
		for _, pid := range below {
			if k.program == nil || k.program.gone || pid != k.program.pid {
				left = true
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		if !left && (k.program == nil || k.program.alone()) {
			return nil
		}
		if !pause.rest() {
			return whatIsLeft(append(below, k.cgroup.processes()...))
		}
	}
}

// report tells the owner. One that does not read is stopped or gone, and will find out.
func (k *keeper) report(r report) { _, _ = unix.Write(reportsFD, line(r)) }

// waitedFor waits for a child that has ended.
func waitedFor(pid int) (w unix.WaitStatus, ok bool) {
	got, err := unix.Wait4(pid, &w, unix.WNOHANG, nil)
	return w, err == nil && got == pid
}

// giveUp is after how long processes that were sent SIGKILL, and are there still, are left
// alone: they may not be killed, or cannot be, or start new ones faster than these are found.
const giveUp = 10 * time.Second

// ErrLeft says that processes are left that could not be killed.
var ErrLeft = errors.New("not all processes of the program could be killed")

func whatIsLeft(pids []int) error {
	slices.Sort(pids)
	pids = slices.Compact(pids)
	if len(pids) == 0 {
		return fmt.Errorf("%w: which ones are left cannot be read", ErrLeft)
	}
	return fmt.Errorf("%w: %d are left after %v of SIGKILL, the first is process %d", ErrLeft, len(pids), giveUp, pids[0])
}

// pauses are those between two looks at what the kernel is killing.
type pauses struct {
	begun time.Time
	last  time.Duration
}

// rest pauses, and returns false when it is time to give up.
func (p *pauses) rest() bool {
	if p.last == 0 {
		p.begun = time.Now()
	}
	p.last = min(max(100*time.Microsecond, 2*p.last), 20*time.Millisecond)
	time.Sleep(p.last)
	return time.Since(p.begun) < giveUp
}

// Signal sends a signal to all processes of a group. One that stands still is woken: it
// could not hear it.
func Signal(group int, sig syscall.Signal) {
	_ = unix.Kill(-group, sig)
	_ = unix.Kill(-group, unix.SIGCONT)
}
