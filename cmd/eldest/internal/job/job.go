package job

import (
	"bufio"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/eldest-io/eldest/internal/subprocess"
)

// Job is the owner's side of one keeper, which runs at most one program. Start makes it, Close ends
// it. All methods are safe for concurrent use. A process has one job at a time: what a dead keeper
// leaves is found among the children of this process.
type Job struct {
	keeper   *exec.Cmd
	starts   chan func()
	orders   *os.File
	messages *messages // nil without Spec.Messages
	// before are the children that this process had already; they do not belong to the job.
	before []int
	// watching has the goroutines that Close waits for.
	watching sync.WaitGroup

	mu sync.Mutex
	// cgroup is nil where there is none, and once it is removed; ungrouped is why the
	// program has none.
	cgroup    *cgroup
	ungrouped error
	// group is the program's process group while no other group can have its ID; else 0.
	group int
	pid   int // of the program, once it was started
	// launched and hooked receive the answers to Launch and Run; nil while no answer is awaited.
	launched chan error
	hooked   chan HookResult
	end      End // valid once over is closed
	// buried is true if another process may have the keeper's process ID, dismissed if the keeper was
	// killed from here, killing if all that runs is killed from here.
	closing, buried, dismissed, killing bool

	warned chan struct{} // closed when the deadline is near
	over   chan struct{} // closed when nothing runs any more and nothing will, except what is left
	gone   chan struct{} // closed when the keeper has ended and nothing is left of it
}

// ErrKeeper is returned if the keeper has ended, or does not respond.
var ErrKeeper = errors.New("the keeper of the program has ended")

// ErrLate is returned by Launch if the keeper's deadline was too near, or over. Nothing was started,
// and Launch may be called again.
var ErrLate = errors.New("the lease is about to run out")

// Start starts a keeper: this executable with the given arguments, which must lead to a call of Keep.
// Its standard streams are those of the processes that it will start; nil is /dev/null. Start returns
// without waiting for the keeper.
func Start(args []string, spec Spec, stdin, stdout, stderr *os.File) (*Job, error) {
	path, err := self()
	if err != nil {
		return nil, err
	}
	if err := adopt(); err != nil {
		return nil, fmt.Errorf("adopt orphans: %w", err)
	}
	before, sure := children()
	if !sure {
		return nil, errors.New("the list of this process's children cannot be read")
	}
	keeper := exec.Command(path)
	keeper.Args = args
	if stdin != nil { // a nil *os.File is not a nil interface
		keeper.Stdin = stdin
	}
	if stdout != nil {
		keeper.Stdout = stdout
	}
	if stderr != nil {
		keeper.Stderr = stderr
	}
	keeper.SysProcAttr = woken()
	j := &Job{
		keeper: keeper, starts: starter(), before: before,
		warned: make(chan struct{}), over: make(chan struct{}), gone: make(chan struct{}),
	}
	if j.cgroup, j.ungrouped = newCgroup(); j.cgroup != nil {
		spec.Cgroup = j.cgroup.path
	}
	spec.Owner = os.Getpid()
	reports, err := j.start(spec)
	if err != nil {
		close(j.starts)
		j.cgroup.remove()
		return nil, fmt.Errorf("start the keeper: %w", err)
	}
	go j.listen(reports)
	if j.messages != nil {
		j.watching.Go(j.write)
	}
	return j, nil
}

// start starts the keeper's process.
func (j *Job) start(spec Spec) (reports *os.File, err error) {
	end, specs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = end.Close() }()
	j.keeper.ExtraFiles = []*os.File{end}
	if spec.Messages {
		theirs, err := j.newMessages()
		if err != nil {
			return nil, err
		}
		defer func() { _ = theirs.Close() }()
	}
	j.orders, reports, err = subprocess.Start(j.keeper, func() error {
		result := make(chan error)
		j.starts <- func() { result <- j.keeper.Start() }
		return <-result
	})
	if err != nil {
		_ = specs.Close()
		j.messages.close()
		return nil, err
	}
	j.watching.Go(func() {
		_ = gob.NewEncoder(specs).Encode(spec) // fails if the keeper has ended
		_ = specs.Close()
	})
	return reports, nil
}

// SetDeadline sends the keeper a new deadline. It does not block: a keeper that has not read for so
// long that its pipe is full keeps the old one.
func (j *Job) SetDeadline(d Deadline) { _ = j.tell(order{Deadline: &d}) }

// Launch has the keeper start the program, with env added to its environment. The channel receives
// nil when it runs, or why it does not, before Over is closed; a stopped keeper does not answer. A
// deadline must be set, and be ahead; else it is ErrLate. If the program runs already, nil confirms
// that the keeper guards it with such a deadline. One call at a time.
func (j *Job) Launch(env ...string) <-chan error {
	return ask(j, &j.launched, startOrder{Env: env}, ErrKeeper)
}

// Run runs a hook, with env added to its environment. The channel receives one result, which is an
// error if the job ends first. Only one call at a time.
func (j *Job) Run(hook string, env ...string) <-chan HookResult {
	return ask(j, &j.hooked, startOrder{Hook: hook, Env: env}, HookResult{Refused: ErrKeeper.Error()})
}

// ask has the keeper start something. The answer is gone if the keeper has ended. A keeper whose pipe
// is full is useless, and is killed.
func ask[T any](j *Job, question *chan T, s startOrder, gone T) <-chan T {
	asked := make(chan T, 1)
	j.mu.Lock()
	*question = asked
	j.mu.Unlock()
	err := j.tell(order{Start: &s})
	if errors.Is(err, unix.EAGAIN) {
		j.killKeeper()
	}
	if err != nil || Closed(j.gone) { // there can be no answer
		answer(j, question, gone)
	}
	return asked
}

// Closed reports whether a channel of a job, such as Over, is closed.
func Closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// answer sends the answer that is awaited, if there is one.
func answer[T any](j *Job, question *chan T, with T) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if *question != nil {
		*question <- with
		*question = nil
	}
}

// Pid is the program's process ID; 0 before it was started.
func (j *Job) Pid() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.pid
}

// Signal sends a signal to the program's process group, if it runs.
func (j *Job) Signal(sig syscall.Signal) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.group != 0 {
		_ = unix.Kill(-j.group, sig)
	}
}

// Stop sends a signal to the program's process group, stopped or not, and has the keeper
// kill it after the grace, or at the deadline if that is sooner. It does not block.
func (j *Job) Stop(sig syscall.Signal, grace time.Duration) {
	_ = j.tell(order{StopBy: Now() + grace})
	j.Signal(sig)
	j.Signal(unix.SIGCONT) // a stopped process could not receive it
}

// Warned returns a channel that is closed when the keeper has sent SIGTERM because the
// deadline is near.
func (j *Job) Warned() <-chan struct{} { return j.warned }

// Ungrouped returns nil, or why the program is not in a control group of its own: then processes that
// go on forking may be faster than the search for them. On systems other than Linux it is nil.
func (j *Job) Ungrouped() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ungrouped
}

// Over returns a channel that is closed when the program has ended and nothing of it runs any more,
// except what End.Left names.
func (j *Job) Over() <-chan struct{} { return j.over }

// End is how a job ended.
type End struct {
	// Status is how the program ended.
	Status Status
	// Lost is nil, or how the keeper ended without being asked to: an error that wraps ErrKeeper.
	Lost error
	// Left is nil, or an error that wraps ErrLeft and says which processes could not be killed.
	Left error
}

// End returns how the job ended. It is valid once Over is closed; it blocks while processes that a
// dead keeper left are dealt with.
func (j *Job) End() End {
	j.mu.Lock()
	buried := j.buried
	j.mu.Unlock()
	if buried {
		<-j.over
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.end
}

// Kill kills all that runs and returns when nothing does, except what End.Left names. This process
// kills the program's groups, and processes that have left them, at once. A keeper that does not
// confirm within the patience that nothing is left is killed as well, and then this process deals
// with what it leaves, for 10 s at most.
func (j *Job) Kill(patience time.Duration) {
	late := time.After(patience)
	j.mu.Lock()
	j.killing = true
	j.mu.Unlock()
	j.killGroup()
	j.killBelow()
	_ = j.tell(order{Kill: true})
	select {
	case <-j.over:
	case <-late:
		j.killKeeper()
		<-j.over
	}
}

// Close ends the keeper, and kills what runs. It returns when nothing is left, except what End.Left
// names, after 11 s at the latest.
func (j *Job) Close() {
	j.mu.Lock()
	again := j.closing
	j.closing = true
	j.mu.Unlock()
	if !again {
		_ = j.tell(order{Dismissed: true})
		_ = j.orders.Close()
		timer := time.AfterFunc(time.Second, j.killKeeper)
		defer timer.Stop()
	}
	<-j.gone
	j.messages.close()
	j.watching.Wait()
}

// killGroup kills the program's process group, and everything in its control group.
func (j *Job) killGroup() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.cgroup.killAll()
	if j.group != 0 {
		_ = unix.Kill(-j.group, unix.SIGKILL)
	}
}

// killBelow kills the processes that it finds below the keeper. One search is no proof, because
// processes start processes; it is for a keeper that is stopped, whose end takes a moment.
func (j *Job) killBelow() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.buried {
		return
	}
	for _, pid := range below(j.keeper.Process.Pid) {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// killKeeper kills a keeper that does not do its work.
func (j *Job) killKeeper() {
	j.mu.Lock()
	j.dismissed = j.dismissed || !j.buried
	j.mu.Unlock()
	_ = j.keeper.Process.Kill()
}

// tell sends an order. It does not wait if the keeper does not read.
func (j *Job) tell(o order) error { return subprocess.Offer(j.orders, line(o)) }

// listen handles the keeper's reports until there can be none any more.
func (j *Job) listen(reports *os.File) {
	scanner := bufio.NewScanner(reports)
	for scanner.Scan() {
		var r report
		if json.Unmarshal(scanner.Bytes(), &r) != nil {
			break
		}
		j.handle(r)
	}
	_ = reports.Close()
	j.bury()
}

func (j *Job) handle(r report) {
	switch {
	case r.Started != 0:
		j.mu.Lock()
		j.group, j.pid = r.Started, r.Started
		j.mu.Unlock()
		j.attend(r.Started)
		answer(j, &j.launched, nil)
	case r.Running:
		answer(j, &j.launched, nil)
	case r.Refused != "":
		answer(j, &j.launched, refusal(r.Refused))
	case r.Ungrouped != "":
		j.mu.Lock()
		j.ungrouped = errors.New(r.Ungrouped)
		j.mu.Unlock()
	case r.Warned:
		close(j.warned)
	case r.Hook != nil:
		j.mu.Lock()
		if j.killing { // the keeper may have seen the hook's end before the order to kill
			r.Hook.Refused = ErrOver.Error()
		}
		j.mu.Unlock()
		answer(j, &j.hooked, *r.Hook)
	case r.Cleared:
		j.mu.Lock()
		j.group = 0
		j.mu.Unlock()
		if j.tell(order{Reap: true}) != nil {
			j.killKeeper()
		}
	case r.Reaped != nil:
		j.mu.Lock()
		j.end.Status = *r.Reaped
		j.mu.Unlock()
		close(j.over)
	}
}

// attention is how long a keeper may take to notice that the program has ended.
const attention = 5 * time.Second

// attend kills a keeper that does not notice the program's end: otherwise a stopped keeper would keep
// the owner waiting for a program that has ended.
func (j *Job) attend(program int) {
	fd, err := subprocess.Open(program)
	if err != nil {
		return // not available here
	}
	j.watching.Go(func() {
		defer func() { _ = unix.Close(fd) }()
		for !subprocess.Dead(fd, time.Second) {
			if Closed(j.over) { // it could not be killed
				return
			}
		}
		select {
		case <-j.over:
		case <-time.After(attention):
			j.killKeeper()
		}
	})
}

// howKeeperEnded returns how a keeper that was waited for has ended. The caller holds mu.
func (j *Job) howKeeperEnded() error {
	how := "for an unknown reason"
	if j.dismissed {
		how = "it did not respond, and was killed"
	} else if state := j.keeper.ProcessState; state != nil { // nil: other code has waited for it
		how = statusOf(unix.WaitStatus(state.Sys().(syscall.WaitStatus))).String()
	}
	return fmt.Errorf("%w: process %d, %s", ErrKeeper, j.keeper.Process.Pid, how)
}

// bury deals with what a keeper that has ended leaves: nothing, if it ended as it should. The program
// has died with it if there is a death signal; the program's children have become children of this
// process.
func (j *Job) bury() {
	j.killGroup()
	_ = j.keeper.Process.Kill()
	j.mu.Lock()
	j.buried = true
	j.mu.Unlock()
	_ = j.keeper.Wait() // when this returns, its children are children of this process
	j.killGroup()
	j.mu.Lock()
	j.group = 0 // what is left of it is found among the children
	j.mu.Unlock()
	status := Status{Unknown: true}
	left := killUntilGone(j.cgroup, func() (pids []int, sure bool) {
		pids, sure = children()
		pids = slices.DeleteFunc(pids, func(pid int) bool { return slices.Contains(j.before, pid) })
		for _, pid := range pids {
			if w, ok := waitedFor(pid); !ok {
				_ = unix.Kill(pid, unix.SIGKILL)
			} else if pid == j.Pid() {
				status = statusOf(w)
			}
		}
		return pids, sure // including those that have ended: their children became ours only now
	})
	answer(j, &j.hooked, HookResult{Refused: ErrKeeper.Error()})
	answer(j, &j.launched, ErrKeeper)
	j.mu.Lock()
	j.cgroup.remove()
	j.cgroup, j.end.Left = nil, left
	if !Closed(j.over) {
		j.end.Status = status
		if !j.closing {
			j.end.Lost = j.howKeeperEnded()
		}
		close(j.over)
	}
	j.mu.Unlock()
	close(j.starts)
	close(j.gone)
}

// GiveUp is after how long processes that were sent SIGKILL, and still exist, are left alone: they
// may not be killed, or cannot be, or they start new ones faster than these are found. Only tests set it.
var GiveUp = 10 * time.Second

// ErrLeft means that processes are left that could not be killed.
var ErrLeft = errors.New("not all processes of the program could be killed")

// killUntilGone kills the processes in a control group, and calls kill to kill those that it finds,
// until there are none in either, or for GiveUp; then the error wraps ErrLeft. kill returns the
// processes that it has found, and whether these are certainly all.
func killUntilGone(c *cgroup, kill func() (pids []int, sure bool)) error {
	begun := time.Now()
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		c.killAll()
		populated := c.populated()
		pids, sure := kill()
		if !populated && sure && len(pids) == 0 {
			return nil
		}
		if time.Since(begun) >= GiveUp {
			return whatIsLeft(append(pids, c.processes()...))
		}
		time.Sleep(pause)
	}
}

func whatIsLeft(pids []int) error {
	if len(pids) == 0 {
		return fmt.Errorf("%w: the list of the remaining processes cannot be read", ErrLeft)
	}
	slices.Sort(pids)
	pids = slices.Compact(pids)
	return fmt.Errorf("%w: %d are left after %v of SIGKILL, the first is process %d", ErrLeft, len(pids), GiveUp, pids[0])
}
