package service

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/offspring"
)

// node is one node's process. A node that ended and comes back is another one.
type node struct {
	*offspring.Process
	index  int
	name   string
	member string // through which it reaches etcd, and nothing else
}

// report is one line of "eldest service node --json".
type report struct {
	Event   Kind         `json:"event"`
	Time    time.Time    `json:"time"`
	Address string       `json:"address"`
	Role    string       `json:"role"`
	Key     string       `json:"key"`
	Token   eldest.Token `json:"token"`
	Leader  string       `json:"leader"`
	Reason  string       `json:"reason"`
}

// launch starts a node's process and returns without waiting for what it says; tell is
// called for each fact, in order, from one goroutine.
func launch(s *offspring.Spawner, n *node, cmd *exec.Cmd, tell func(Fact)) (err error) {
	n.Process, err = s.Launch(cmd,
		func(line []byte) {
			if f, ok := n.fact(line); ok {
				tell(f)
			}
		},
		func(p *offspring.Process) {
			code, complaint := p.Result()
			tell(Fact{At: time.Now(), Kind: Exited, Node: n.name, Code: code, Reason: complaint})
		})
	if err != nil {
		return fmt.Errorf("node %s: %w", n.name, err)
	}
	return nil
}

// fact turns one of the process's lines into a fact.
func (n *node) fact(text []byte) (Fact, bool) {
	var line report
	if err := json.Unmarshal(text, &line); err != nil {
		return Fact{}, false // a killed process may leave half a line
	}
	if line.Time.IsZero() {
		line.Time = time.Now()
	}
	return Fact{
		At: line.Time, Kind: line.Event, Node: n.name, Member: n.member, Address: line.Address,
		Role: line.Role, Key: line.Key, Token: line.Token, Leader: line.Leader, Reason: line.Reason,
	}, true
}
