//go:build unix

package job

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/eldest-io/eldest/internal/pipe"
)

// Job is the owner's side of one keeper, which runs at most one program. Made by Start,
// ended by Close. All methods are safe for concurrent use. One process has one job at a
// time: what is left by a keeper that dies is found as this process's children.
type Job struct {
	keeper *exec.Cmd
	starts chan func()
	orders *os.File
	// before are the children that this process had already, and that are not ours.
	before []int

	writing sync.Mutex // held while an order is written
	backlog backlog
	// launching waits for its end; Close waits for it.
	launching sync.WaitGroup

	mu sync.Mutex
	// cgroup is nil where there is none, and once it is removed; ungrouped is why the
	// program has none.
	cgroup    *cgroup
	ungrouped error
	// group is the program's process group while its ID cannot be another's; else 0.
	group int
	pid   int // of the program, once it was started
	hooks map[int]chan HookResult
	next  int
	// status is how the program ended; valid once over is closed.
	status Status
	// lost is how the keeper ended before it was to; nil while it has not. left is what
	// could not be killed.
	lost, left error
	// buried says that the keeper's process ID may be another's, dismissed that it was
	// killed from here.
	closing, buried, dismissed bool

	started chan error    // of the program
	warned  chan struct{} // closed when the deadline is near
	over    chan struct{} // closed when nothing runs any more and nothing will, but what is left
	gone    chan struct{} // closed when the keeper is gone and what was below it was dealt with
}

// ErrKeeper says that the keeper is gone, or does not listen.
var ErrKeeper = errors.New("the keeper of the program is gone")

// ErrLate is Launch's when the deadline that the keeper knew of was too near, or over.
// Nothing was started, and Launch may be called again.
var ErrLate = errors.New("the lease is about to run out")

// Start starts a keeper: this executable with the given arguments, which must lead to
// Keep. Its standard streams are those of the processes that it will start; nil is
// /dev/null. It returns
// without waiting for the keeper.
func Start(args []string, stdin, stdout, stderr *os.File) (*Job, error) {
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
	theirOrders, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	reports, theirReports, err := os.Pipe()
	if err != nil {
		_, _ = theirOrders.Close(), orders.Close()
		return nil, err
	}
	keeper := exec.Command(path)
	keeper.Args = args
	if stdin != nil { // a nil file is not a nil stream
		keeper.Stdin = stdin
	}
	if stdout != nil {
		keeper.Stdout = stdout
	}
	if stderr != nil {
		keeper.Stderr = stderr
	}
	keeper.ExtraFiles = []*os.File{theirOrders, theirReports}
	keeper.SysProcAttr = woken()
	j := &Job{
		keeper: keeper, starts: starter(), orders: orders, before: before, hooks: make(map[int]chan HookResult),
		started: make(chan error, 1), warned: make(chan struct{}), over: make(chan struct{}), gone: make(chan struct{}),
	}
	j.cgroup, j.ungrouped = newCgroup()
	result := make(chan error)
	j.starts <- func() { result <- keeper.Start() }
	err = <-result
	_, _ = theirOrders.Close(), theirReports.Close()
	if err != nil {
		close(j.starts)
		j.cgroup.remove()
		_, _ = orders.Close(), reports.Close()
		return nil, fmt.Errorf("start the keeper: %w", err)
	}
	if j.cgroup != nil {
		j.tell(order{Cgroup: []byte(j.cgroup.path)})
	}
	go j.listen(reports)
	return j, nil
}

// SetDeadline tells the keeper of a new deadline. It does not block: while another order
// is being written the deadline waits for that, and a newer one takes its place. A keeper
// that does not listen keeps the old one.
func (j *Job) SetDeadline(d Deadline) { j.tell(order{Deadline: &d}) }

// SetFarewell has the keeper do something when this process has died and nothing of the program runs
// any more: what with says to the function that was given to Keep. It blocks for 5 s at most, while
// the keeper reads nothing.
func (j *Job) SetFarewell(with []byte) error { return j.order(order{Farewell: with}) }

// Launch has the keeper start the program. The channel gets nil when it runs, or why it
// does not, once Over is closed at the latest: a keeper that stands still starts nothing and
// says nothing. A deadline must have been set, and be ahead; else it is ErrLate.
func (j *Job) Launch(c Command) <-chan error {
	result := make(chan error, 1)
	j.launching.Go(func() {
		if err := j.order(startOf(0, c)); err != nil {
			result <- err
			return
		}
		select {
		case err := <-j.started:
			result <- err
			return
		case <-j.over:
		}
		select {
		case err := <-j.started: // and it is over already
			result <- err
		default:
			result <- ErrKeeper
		}
	})
	return result
}

// Pid is the program's process ID; 0 before it was started.
func (j *Job) Pid() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.pid
}

// Run runs a hook beside the program. The channel gets one result; if the job ends first,
// that says so.
func (j *Job) Run(c Command) <-chan HookResult {
	result := make(chan HookResult, 1)
	j.mu.Lock()
	j.next++
	id := j.next
	j.hooks[id] = result
	j.mu.Unlock()
	if err := j.order(startOf(id, c)); err != nil {
		j.hooked(id, HookResult{Err: err})
		return result
	}
	select {
	case <-j.gone: // the listener may have looked for hooks before there was this one
		j.hooked(id, HookResult{Err: ErrKeeper})
	default:
	}
	return result
}

// Signal sends a signal to the program's process group, if it runs.
func (j *Job) Signal(sig syscall.Signal) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.group != 0 {
		_ = unix.Kill(-j.group, sig)
	}
}

// Stop sends a signal to the program's process group, awake or not, and has the keeper
// kill it after the grace, or at the deadline if that is sooner. It does not block.
func (j *Job) Stop(sig syscall.Signal, grace time.Duration) {
	j.tell(order{StopBy: Now() + grace})
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.group != 0 {
		Signal(j.group, sig)
	}
}

// Warned returns a channel that is closed when the keeper has sent SIGTERM because the
// deadline is near.
func (j *Job) Warned() <-chan struct{} { return j.warned }

// Ungrouped returns nil, or why the program is not, or will not be, in a control group of
// its own: then a tree of processes that goes on forking may be faster than those who look
// for it. On systems other than Linux it is nil: see Promises.
func (j *Job) Ungrouped() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ungrouped
}

// Settle blocks while what a keeper that has died left is dealt with, so that Lost says
// whether it has.
func (j *Job) Settle() {
	j.mu.Lock()
	buried := j.buried
	j.mu.Unlock()
	if buried {
		<-j.over
	}
}

// Over returns a channel that is closed when the program has ended and nothing of it runs
// any more, or nothing but what Left says.
func (j *Job) Over() <-chan struct{} { return j.over }

// Status is how the program ended. It means something once Over is closed. Whether that was
// because the keeper was gone says Lost.
func (j *Job) Status() Status {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.status
}

// Lost returns nil, or how the keeper came to be gone without having been told to go: an
// error that wraps ErrKeeper.
func (j *Job) Lost() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lost
}

// Left returns nil, or an error that wraps ErrLeft and says which processes could not be
// killed. It means something once Over is closed.
func (j *Job) Left() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.left
}

// Kill kills all that runs and returns when nothing does, or nothing but what Left says. The
// program's groups, and what has left them, are killed at once, from here. A keeper that does
// not confirm that nothing is left within the patience is killed as well, and what it leaves
// is dealt with from here, for 10 s at most.
func (j *Job) Kill(patience time.Duration) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	j.killGroup()
	j.killBelow()
	j.tell(order{Kill: true})
	select {
	case <-j.over:
		return
	case <-timer.C:
	}
	j.killKeeper()
	<-j.over
}

// Close ends the keeper, and kills what runs. It returns when nothing is left, or nothing but
// what Left says, after 11 s at the latest.
func (j *Job) Close() {
	j.mu.Lock()
	again := j.closing
	j.closing = true
	j.mu.Unlock()
	if !again {
		j.tell(order{Dismissed: true})
		_ = j.orders.Close()
		timer := time.AfterFunc(time.Second, j.killKeeper)
		defer timer.Stop()
	}
	<-j.gone
	j.launching.Wait()
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

// killBelow kills what can be seen below the keeper. One look is not proof, for processes
// beget processes; it is for a keeper that stands still, whose end takes a moment.
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

// order sends a line that the keeper cannot do without: the start of a process, or the last
// one. It waits for a keeper that does not read, for 5 s: one that does not take what it
// must is useless, and killed.
func (j *Job) order(o order) error {
	data := line(o)
	j.writing.Lock()
	defer j.catchUp()
	defer j.writing.Unlock()
	_ = j.orders.SetWriteDeadline(time.Now().Add(5 * time.Second))
	_, err := j.orders.Write(data)
	_ = j.orders.SetWriteDeadline(time.Time{})
	if err == nil {
		return nil
	}
	if !errors.Is(err, unix.EPIPE) { // nobody reads who has ended
		j.killKeeper()
	}
	return fmt.Errorf("%w: %w", ErrKeeper, err)
}

// tell sends a short line, of which none waits for anything: not for a keeper that does not
// read, who misses it, and not for an order that is being written, which may wait for that
// keeper. Whoever writes that order writes this one next.
func (j *Job) tell(o order) {
	j.backlog.add(o)
	j.catchUp()
}

// catchUp writes what there is to tell, unless somebody writes.
func (j *Job) catchUp() {
	for j.backlog.some() && j.writing.TryLock() {
		for _, o := range j.backlog.take() {
			_ = pipe.Offer(j.orders, line(o))
		}
		j.writing.Unlock()
	}
}

// killKeeper kills a keeper that does not do its work.
func (j *Job) killKeeper() {
	j.mu.Lock()
	j.dismissed = j.dismissed || !j.buried
	j.mu.Unlock()
	_ = j.keeper.Process.Kill()
}
