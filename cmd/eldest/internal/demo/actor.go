package demo

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/eldest-io/eldest"
)

// actor is one candidate's process.
type actor struct {
	name    string
	member  int    // its index
	through string // its name
	cmd     *exec.Cmd
	// exited is closed when the process is gone, before that is told; ended when
	// everything is told.
	exited, ended chan struct{}
	// complaint is the end of what it wrote to stderr; valid once exited.
	complaint string
}

// report is one line of "eldest campaign --json".
type report struct {
	Event       Kind         `json:"event"`
	Time        time.Time    `json:"time"`
	Key         string       `json:"key"`
	Token       eldest.Token `json:"token"`
	Predecessor string       `json:"predecessor"`
	Queue       int64        `json:"queue"`
	Cause       string       `json:"cause"`
}

// launch starts a candidate's process and returns without waiting for what it
// says; tell is called for each fact, in order, from one goroutine.
func launch(s *spawner, a *actor, cmd *exec.Cmd, tell func(Fact)) error {
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.Env = cleanEnv(os.Environ())
	if err := s.start(cmd); err != nil {
		return fmt.Errorf("candidate %s: %w", a.name, err)
	}
	a.cmd, a.exited, a.ended = cmd, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(a.ended)
		a.listen(stdout, tell)
		code := exitStatus(cmd.Wait())
		a.complaint = lastLine(stderr.String())
		close(a.exited) // first, for whoever is woken by the fact
		tell(Fact{At: time.Now(), Kind: Exited, Actor: a.name, Code: code, Cause: a.complaint})
	}()
	return nil
}

// listen turns the process's lines into facts until it closes its output.
func (a *actor) listen(r io.Reader, tell func(Fact)) {
	for sc := bufio.NewScanner(r); sc.Scan(); {
		var line report
		if err := json.Unmarshal(sc.Bytes(), &line); err != nil {
			continue // a killed process may leave half a line
		}
		if line.Time.IsZero() {
			line.Time = time.Now()
		}
		tell(Fact{
			At: line.Time, Kind: line.Event, Actor: a.name, Key: line.Key, Token: line.Token,
			Member: a.through, Predecessor: line.Predecessor, Queue: line.Queue, Cause: line.Cause,
		})
	}
}

// gone reports whether the process has ended.
func (a *actor) gone() bool {
	select {
	case <-a.exited:
		return true
	default:
		return false
	}
}

// end kills the process, whatever it is doing, and waits for it.
func (a *actor) end() {
	_ = a.cmd.Process.Kill() // it may have ended already
	<-a.ended
}

// exitStatus is the exit code, -1 after a signal.
func exitStatus(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	default:
		return -1
	}
}

// cleanEnv leaves out what would make a candidate talk to another etcd, or with
// credentials that ours does not know.
func cleanEnv(env []string) []string {
	var kept []string
	for _, v := range env {
		if !strings.HasPrefix(v, "ELDEST_") && !strings.HasPrefix(v, "ETCDCTL_") {
			kept = append(kept, v)
		}
	}
	return kept
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}
