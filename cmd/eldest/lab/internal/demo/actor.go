package demo

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
)

// actor is one candidate's process.
type actor struct {
	*offspring.Process
	name    string
	member  int    // its index
	through string // its name
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
func launch(s *offspring.Spawner, a *actor, cmd *exec.Cmd, tell func(Fact)) (err error) {
	a.Process, err = s.Launch(cmd,
		func(line []byte) {
			if f, ok := a.fact(line); ok {
				tell(f)
			}
		},
		func(p *offspring.Process) {
			code, complaint := p.Result()
			tell(Fact{At: time.Now(), Kind: Exited, Actor: a.name, Code: code, Cause: complaint})
		})
	if err != nil {
		return fmt.Errorf("candidate %s: %w", a.name, err)
	}
	return nil
}

// fact turns one of the process's lines into a fact.
func (a *actor) fact(text []byte) (Fact, bool) {
	var line report
	if err := json.Unmarshal(text, &line); err != nil {
		return Fact{}, false // a killed process may leave half a line
	}
	if line.Time.IsZero() {
		line.Time = time.Now()
	}
	return Fact{
		At: line.Time, Kind: line.Event, Actor: a.name, Key: line.Key, Token: line.Token,
		Member: a.through, Predecessor: line.Predecessor, Queue: line.Queue, Cause: line.Cause,
	}, true
}
