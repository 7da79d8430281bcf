package job

import (
	"encoding/gob"
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

	"github.com/eldest-io/eldest/internal/subprocess"
)

// The keeper's file descriptors of its Spec and, with Spec.Messages, of the messages to the program.
const (
	specFD     = subprocess.ReportsFD + 1
	messagesFD = specFD + 1
)

// keeper is the state of the keeper's process. One goroutine owns it and blocks only in poll, so that
// nothing can come between a deadline and the kill.
type keeper struct {
	spec   Spec
	orders subprocess.Orders
	alarm  alarm
	starts chan func()
	wake   *os.File // readable when a child may have ended
	cgroup *cgroup  // nil where there is none

	// dismissed is true if the owner has ended the job and lives on.
	dismissed bool
	deadline  Deadline
	// stopBy is when the program is killed, whatever the deadline is; 0 is never.
	stopBy time.Duration
	// program is nil before its start. Invariant: it is waited for after the owner's Reap, or at the
	// end; until then no other process or group has its ID.
	program *child
	hook    *hook // nil while none runs
	// cleared is true when nothing runs and nothing will; stuck is not nil if something was left
	// after all.
	cleared bool
	stuck   error
}

// hook is a process beside the program.
type hook struct {
	pid      int
	until    time.Duration // 0 is without a limit
	timedOut bool
}

// Keep runs the keeper. It executes orders until the owner is gone, and returns when no process is
// left below it, or with an error that says what could not be killed. Only a process that Start
// started may call it, before anything else.
//
// prepare is called with Spec.Farewell, if there is one. The function that it returns is called only
// if the owner has died without Close and no process of the program runs any more.
func Keep(prepare func(with []byte) (farewell func() error)) error {
	if err := subprocess.Inherit(); err != nil {
		return errors.New("this command supervises the program of \"eldest run\"; only eldest run starts it")
	}
	settle()
	// Service managers send signals to a whole process group to ask for the orderly end of the
	// program; that is the task of the owner. The signals are caught and not ignored, because
	// processes that are started would ignore them, too.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2,
		unix.SIGPIPE, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	k := &keeper{starts: starter()}
	if err := k.prepare(); err != nil {
		return err
	}
	farewell := func() error { return nil }
	// The owner may be dead by now. Then this process has another parent, which lives on.
	owner, err := subprocess.Parent(k.spec.Owner)
	orphaned := os.Getppid() != k.spec.Owner
	if (err == nil || orphaned) && k.spec.Farewell != nil {
		farewell = prepare(k.spec.Farewell)
	}
	for k.step() {
	}
	if k.stuck == nil {
		k.stuck = k.clear()
	}
	k.cgroup.remove()
	if k.stuck != nil || k.dismissed || !orphaned && (err != nil || !subprocess.Dead(owner, subprocess.Dying)) {
		return k.stuck
	}
	return farewell()
}

// prepare reads the Spec and opens what the keeper needs later.
func (k *keeper) prepare() error {
	file := os.NewFile(specFD, "spec")
	err := gob.NewDecoder(file).Decode(&k.spec)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if k.spec.Messages {
		unix.CloseOnExec(messagesFD)
		if err := unix.SetNonblock(messagesFD, false); err != nil { // a shell reads it
			return err
		}
	}
	if k.spec.Cgroup != "" {
		if k.cgroup, err = openCgroup(k.spec.Cgroup); err != nil {
			k.report(report{Ungrouped: err.Error()})
		}
	}
	if k.alarm, err = newAlarm(); err != nil {
		return err
	}
	wake, ends, err := os.Pipe()
	if err != nil {
		return err
	}
	k.wake = wake
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	go func() {
		for range ended {
			_, _ = ends.Write([]byte{0})
		}
	}()
	return nil
}

// starter returns a channel for functions that start processes. They are run on one thread that lives
// as long as the process, because the kernel ties the death signal to the thread and not to the
// process, and Go can end its threads at any time.
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

// step does what is due, and waits for the next event. It returns false when the owner is gone, or
// when the owner has to deal with processes that this process could not kill.
func (k *keeper) step() bool {
	wake := int(k.wake.Fd())
	limit := k.alarm.set(k.due(Now()))
	if k.stuck != nil {
		return false
	}
	fds := []unix.PollFd{{Fd: subprocess.OrdersFD, Events: unix.POLLIN}, {Fd: int32(wake), Events: unix.POLLIN}, {Fd: int32(k.alarm.fd), Events: unix.POLLIN}}
	if _, err := unix.Poll(fds, limit); err != nil && !errors.Is(err, unix.EINTR) {
		return false
	}
	if fds[1].Revents != 0 {
		var drained [64]byte
		_, _ = unix.Read(wake, drained[:])
	}
	// Orders are read before the next call of due: a keeper that was stopped for a while finds newer
	// deadlines there, and need not kill a program that is in good order.
	if fds[0].Revents != 0 && !k.read() {
		return false
	}
	k.collect()
	return k.stuck == nil
}

// due does what is due at the reading now, and returns the time of the next action; 0 is never.
func (k *keeper) due(now time.Duration) (next time.Duration) {
	sooner := func(at time.Duration) {
		if at > 0 && (next == 0 || at < next) {
			next = at
		}
	}
	if h := k.hook; h != nil && h.until > 0 && !h.timedOut {
		if h.timedOut = now >= h.until; h.timedOut {
			_ = unix.Kill(-h.pid, unix.SIGKILL)
		} else {
			sooner(h.until)
		}
	}
	if k.cleared {
		return next
	}
	over := k.deadline.Kill > 0 && now >= k.deadline.Kill
	if k.program != nil {
		over = over || k.stopBy > 0 && now >= k.stopBy || k.program.ended()
	}
	if over {
		k.finish()
		return next
	}
	if k.program != nil && k.stopBy == 0 && k.deadline.Term < k.deadline.Kill {
		if now < k.deadline.Term {
			sooner(k.deadline.Term)
		} else {
			// This is final: a program that was asked to end does so or is killed, even if the lease
			// is renewed after all.
			k.stopBy = k.deadline.Kill
			_ = unix.Kill(-k.program.pid, unix.SIGTERM)
			_ = unix.Kill(-k.program.pid, unix.SIGCONT) // a stopped process could not receive it
			k.report(report{Warned: true})
		}
	}
	sooner(k.deadline.Kill)
	if k.program != nil {
		sooner(k.stopBy)
	}
	return next
}

// read executes the orders that are there. It returns false when there can be no more of them.
func (k *keeper) read() bool {
	lines, more, err := k.orders.Read()
	orders := make([]order, len(lines))
	for i, line := range lines {
		if json.Unmarshal(line, &orders[i]) != nil {
			return false // an invalid order counts as the end of the pipe
		}
	}
	// A keeper that was stopped may find the order to start something and the order to kill: by now
	// another candidate may lead.
	over := slices.ContainsFunc(orders, func(o order) bool { return o.Kill })
	for _, o := range orders {
		if over && o.Start != nil {
			k.refuse(o.Start, ErrOver)
			continue
		}
		k.obey(o)
	}
	return more && err == nil
}

// refuse reports that a process is not started: the owner waits for an answer.
func (k *keeper) refuse(s *startOrder, why error) {
	if s.Hook == "" {
		k.report(report{Refused: why.Error()})
		return
	}
	k.report(report{Hook: &HookResult{Refused: why.Error()}})
}

func (k *keeper) obey(o order) {
	switch {
	case o.Deadline != nil:
		k.deadline = *o.Deadline
	case o.Start != nil:
		k.start(o.Start)
	case o.StopBy > 0:
		k.stopBy = o.StopBy
	case o.Kill && !k.cleared:
		k.finish()
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

func (k *keeper) start(s *startOrder) {
	program, now := s.Hook == "", Now()
	switch {
	case program && (k.cleared || k.program != nil && k.stopBy > 0), !program && k.cleared && k.program != nil:
		k.refuse(s, ErrOver)
		return
	case program && (k.deadline.Kill == 0 || now >= k.deadline.Term):
		k.refuse(s, ErrLate)
		return
	case program && k.program != nil:
		k.report(report{Running: true})
		return
	}
	c := k.spec.Program
	if !program {
		c = k.spec.Hooks[s.Hook]
	}
	pid, err := k.fork(c, program, s.Env)
	switch {
	case err != nil:
		k.refuse(s, fmt.Errorf("start %s: %w", c.Path, err))
	case program:
		k.program = &child{pid: pid}
		k.report(report{Started: pid})
	default:
		k.hook = &hook{pid: pid}
		if c.Limit > 0 {
			k.hook.until = now + c.Limit
		}
	}
}

// fork starts a process as the leader of a process group of its own, in the control group if that is
// possible. Only the program has the keeper's stdin, which is that of the owner: a hook must not read
// the input of the program.
func (k *keeper) fork(c Command, program bool, env []string) (pid int, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = null.Close() }()
	files := []uintptr{0, 1, 2}
	switch {
	case !program:
		files[0] = null.Fd()
	case k.spec.Messages:
		files = append(files, messagesFD) // as MessagesFD
	}
	if c.Mute {
		files[1] = null.Fd()
	}
	attr := &syscall.ProcAttr{Env: slices.Concat(k.spec.Env, env), Files: files, Sys: mortal()}
	fork := func() {
		done := make(chan struct{})
		k.starts <- func() {
			defer close(done)
			pid, err = syscall.ForkExec(c.Path, c.Args, attr)
		}
		<-done
	}
	k.cgroup.join(attr.Sys)
	fork()
	if err == nil || k.cgroup == nil {
		return pid, err
	}
	// The program or the control group may be the cause of the error.
	why := err
	attr.Sys = mortal()
	if fork(); err == nil {
		k.report(report{Ungrouped: why.Error()})
	}
	return pid, err
}

// collect waits for all child processes that have ended, other than the program.
func (k *keeper) collect() {
	if h := k.hook; h != nil {
		if w, ok := waitedFor(h.pid); ok {
			k.hook = nil
			end := &HookResult{Status: statusOf(w), TimedOut: h.timedOut}
			if k.cleared && k.program != nil {
				end.Refused = ErrOver.Error()
			}
			k.report(report{Hook: end})
		}
	}
	below, _ := children() // a child that is missed now is found later
	for _, pid := range below {
		if !k.isProgram(pid) && (k.hook == nil || k.hook.pid != pid) {
			_, _ = waitedFor(pid)
		}
	}
}

func (k *keeper) isProgram(pid int) bool {
	return k.program != nil && !k.program.gone && k.program.pid == pid
}

// finish kills all processes below, and reports to the owner when nothing runs any more.
func (k *keeper) finish() {
	if k.stuck = k.clear(); k.stuck == nil {
		k.report(report{Cleared: true})
	}
}

// clear kills all processes below. It returns nil when nothing runs any more or, after some time, an
// error that names what is left.
func (k *keeper) clear() error {
	k.cleared = true
	if k.program != nil {
		k.program.killGroup()
	}
	if k.hook != nil {
		_ = unix.Kill(-k.hook.pid, unix.SIGKILL)
	}
	return killUntilGone(k.cgroup, func() (pids []int, sure bool) {
		k.collect()
		// The program is checked before the list is read: its children become children of this
		// process when it ends, and a list that was read before that does not have them.
		ended := k.program == nil || k.program.ended() && k.program.alone()
		pids, sure = children()
		pids = slices.DeleteFunc(pids, k.isProgram)
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		if !ended {
			pids = append(pids, k.program.pid)
		}
		return pids, sure && k.hook == nil
	})
}

// report sends a report to the owner. If the owner does not read, it is stopped or gone.
func (k *keeper) report(r report) { _, _ = unix.Write(subprocess.ReportsFD, line(r)) }

// waitedFor waits for a child that has ended.
func waitedFor(pid int) (w unix.WaitStatus, ok bool) {
	got, err := unix.Wait4(pid, &w, unix.WNOHANG, nil)
	return w, err == nil && got == pid
}
