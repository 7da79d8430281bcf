package benchsite

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"

	"github.com/eldest-io/eldest/bench"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
)

// Workers starts the processes over which a run is spread.
type Workers struct {
	command  func() *exec.Cmd
	greeting []byte
	spawner  *offspring.Spawner

	mu  sync.Mutex
	all []*worker
}

// NewWorkers returns a source of workers, which are processes of command's, and each of which
// reads greeting, one line, first. The caller must Close it.
func NewWorkers(command func() *exec.Cmd, greeting []byte) *Workers {
	return &Workers{command: command, greeting: append(bytes.TrimSpace(greeting), '\n'), spawner: offspring.NewSpawner()}
}

// Spawn starts one; it is bench.Site's Spawn.
func (w *Workers) Spawn(context.Context) (*bench.Spawned, error) {
	p := &worker{cmd: w.command(), gone: make(chan struct{})}
	p.cmd.Env = offspring.Env(os.Environ())
	p.cmd.Stderr = &p.complaints
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// A pipe of ours, because Wait would close the command's own before all is read.
	out, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.cmd.Stdout, p.out = theirs, out
	err = w.spawner.Start(p.cmd)
	_ = theirs.Close()
	if err != nil {
		_ = out.Close()
		return nil, fmt.Errorf("starting a worker: %w", err)
	}
	go func() {
		defer close(p.gone)
		p.code = offspring.Code(p.cmd.Wait())
	}()
	w.mu.Lock()
	w.all = append(w.all, p)
	w.mu.Unlock()
	if _, err := in.Write(w.greeting); err != nil {
		_ = p.kill()
		return nil, fmt.Errorf("starting a worker: %w", err)
	}
	return &bench.Spawned{In: in, Out: p, Kill: p.kill}, nil
}

// Close kills those that still run, and waits.
func (w *Workers) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.all {
		_ = p.kill()
		_ = p.out.Close()
	}
	w.all = nil
	w.spawner.Close()
}

// worker is one process. Reading from it reads its stdout.
type worker struct {
	cmd        *exec.Cmd
	out        *os.File
	complaints bytes.Buffer // its stderr; read it when it is gone
	gone       chan struct{}
	code       int // once it is gone
}

// Read tells why a worker ended that was not killed: the end of a file says too little.
func (p *worker) Read(b []byte) (int, error) {
	n, err := p.out.Read(b)
	if err == nil {
		return n, nil
	}
	<-p.gone
	_ = p.out.Close() // hundreds may come and go in a run
	if p.code > 0 {
		return n, fmt.Errorf("the worker ended (exit code %d): %s", p.code, offspring.LastLine(p.complaints.String()))
	}
	return n, io.EOF
}

func (p *worker) kill() error {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.gone
	return nil
}
