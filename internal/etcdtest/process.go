package etcdtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

// process is one process of a member, from its start to its end.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	ready chan readyLine // at most one
	done  chan struct{}  // closed when the process has ended and was waited for
	err   error          // of Wait; valid once done is closed
	ours  atomic.Bool    // the process was killed by this one
	child atomic.Int64   // the process ID of an etcd that it runs; 0 for the embedded one

	// One request at a time is in progress (Cluster.tell).
	seq     int64
	answers chan reply
}

// readyLine, command and reply are the lines of the member's stdin and stdout; see
// the doc of cmd/eldest/internal/memberproc. Child is in a line of its own.
type readyLine struct {
	Ready bool   `json:"ready"`
	ID    string `json:"id"`
	Child int64  `json:"child"`
}

type link struct {
	From string `json:"from"`
	To   string `json:"to"`
}

type command struct {
	Seq int64  `json:"seq"`
	Cut []link `json:"cut"`
}

type reply struct {
	Seq  int64 `json:"seq"`
	OK   bool  `json:"ok"`
	Held []struct {
		link
		Count int64 `json:"count"`
	} `json:"held"`
	Err string `json:"error"`
}

// errGone is returned for requests to a process that has ended.
var errGone = errors.New("etcdtest: the member's process has ended")

// startProcess starts a command with further args and reads its lines until it ends. It calls died
// at the end if kill did not cause it. All output except those lines is appended to logPath.
func startProcess(command, args []string, logPath string, died func(*os.ProcessState)) (*process, error) {
	logFile, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = logFile.Close() }() // the child has its own descriptor
	p := &process{
		cmd:     exec.Command(command[0], slices.Concat(command[1:], args)...),
		ready:   make(chan readyLine, 1),
		done:    make(chan struct{}),
		answers: make(chan reply, 64),
	}
	p.cmd.Stderr = logFile
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	err = spawn(p.cmd, p.read, func(err error) {
		p.err = errors.Join(err, awaitEnd(int(p.child.Load())))
		if !p.ours.Load() {
			died(p.cmd.ProcessState)
		}
		close(p.done)
	})
	if err != nil {
		return nil, fmt.Errorf("etcdtest: starting a member: %w", err)
	}
	return p, nil
}

// read passes a line of stdout to the goroutine that waits for it.
func (p *process) read(line []byte) {
	var r readyLine
	var answer reply
	switch {
	case json.Unmarshal(line, &r) == nil && r.Ready:
		p.ready <- r
	case r.Child != 0:
		p.child.Store(r.Child)
	case json.Unmarshal(line, &answer) == nil:
		p.answers <- answer
	}
}

// request sends a command and blocks until it is answered, the process ends or ctx
// does. A stopped process does not answer.
func (p *process) request(ctx context.Context, cut []link) (reply, error) {
	p.seq++
	line, err := json.Marshal(command{Seq: p.seq, Cut: cut})
	if err == nil {
		_, err = p.stdin.Write(append(line, '\n'))
	}
	if err != nil {
		return reply{}, fmt.Errorf("%w: %w", errGone, err)
	}
	for {
		select {
		case r := <-p.answers:
			switch {
			case r.Seq != p.seq: // of a request that was given up
			case !r.OK:
				return r, fmt.Errorf("etcdtest: the member refused: %s", r.Err)
			default:
				return r, nil
			}
		case <-p.done:
			return reply{}, errGone
		case <-ctx.Done():
			return reply{}, fmt.Errorf("etcdtest: the member does not answer: %w", context.Cause(ctx))
		}
	}
}

// stop halts the process, and the etcd that it runs, with SIGSTOP. The process is first: while it is
// stopped it cannot wait for its child, so the child's ID stays its own.
func (p *process) stop() error {
	err := p.cmd.Process.Signal(syscall.SIGSTOP)
	if err == nil {
		err = AwaitStopped(p.cmd.Process.Pid)
	}
	child := int(p.child.Load())
	if err != nil || child == 0 {
		return err
	}
	if err := syscall.Kill(child, syscall.SIGSTOP); err != nil {
		return err
	}
	return AwaitStopped(child)
}

// cont resumes what stop has halted.
func (p *process) cont() error {
	var err error
	if child := int(p.child.Load()); child != 0 {
		if err = syscall.Kill(child, syscall.SIGCONT); errors.Is(err, syscall.ESRCH) {
			err = nil // it has ended
		}
	}
	return errors.Join(err, p.cmd.Process.Signal(syscall.SIGCONT))
}

// kill ends the process with SIGKILL, stopped or not, and waits for it. The kernel then kills the etcd
// that it runs, if there is one.
func (p *process) kill() error {
	p.ours.Store(true)
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(10 * time.Second):
		return fmt.Errorf("etcdtest: process %d survived SIGKILL", p.cmd.Process.Pid)
	}
}
