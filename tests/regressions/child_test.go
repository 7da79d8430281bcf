package regressions

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/lease"
)

// childEnv makes this test binary a participant; its value is the order, as JSON.
const childEnv = "ELDEST_REGRESSIONS_CHILD"

// order is the task of a child: lead the election, and report.
type order struct {
	Endpoints []string      `json:"endpoints"`
	Election  string        `json:"election"`
	TTL       time.Duration `json:"ttl"`
	// Node, if set, makes the child an elector with that node ID.
	Node string `json:"node,omitempty"`
	// Mark is the file of the child's stopMark.
	Mark string `json:"mark"`
}

// report is a line that a child writes.
type report struct {
	Event string `json:"event"`
	// Set with "leading".
	Lease int64  `json:"lease,omitempty"`
	Key   string `json:"key,omitempty"`
	Token int64  `json:"token,omitempty"`
	// Set with "resumed", the first use after a pause, and with "status".
	Holds    bool   `json:"holds,omitempty"`
	State    string `json:"state,omitempty"`
	Ended    bool   `json:"ended,omitempty"`
	Renewals int64  `json:"renewals,omitempty"`
	// Set with "looked", of an elector.
	Role string `json:"role,omitempty"`
	// Set with "wrote".
	Name  string `json:"name,omitempty"`
	Error string `json:"error,omitempty"`
}

// beChild is the main function of a child: it leads, reports what it observes first after it was
// stopped, and carries out the commands from its standard input until that ends.
func beChild(role string) {
	var o order
	if err := json.Unmarshal([]byte(role), &o); err != nil {
		panic(err)
	}
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	say := func(r report) {
		mu.Lock()
		defer mu.Unlock()
		_ = out.Encode(r)
	}
	ctx := context.Background()
	cli, err := clientv3.New(clientv3.Config{Endpoints: o.Endpoints, Logger: zap.NewNop()})
	if err != nil {
		panic(err)
	}
	mark := openMark(o.Mark)
	if o.Node != "" {
		beNode(o, cli, mark, say)
	}
	var renewals atomic.Int64
	s, err := lease.Open(ctx, lease.Config{
		Lease: cli,
		Options: lease.Options{
			TTL: o.TTL,
			// Long timeouts: a reply that comes late is still waited for, even past the end of the
			// lease.
			Renewal: func(granted time.Duration) lease.Renewal {
				return lease.Renewal{Every: granted / 6, Timeout: 10 * granted}
			},
			Hooks: lease.Hooks{Renewed: func(lease.RenewedEvent) { renewals.Add(1) }},
		},
	})
	if err != nil {
		panic(err)
	}
	c, err := election.New(election.Config{Election: o.Election, Session: s, KV: cli, Watcher: cli})
	if err != nil {
		panic(err)
	}
	l, err := c.Campaign(ctx)
	if err != nil {
		panic(err)
	}
	say(report{Event: "leading", Lease: int64(s.ID()), Key: l.Key(), Token: int64(l.Token())})
	go func() {
		// The first use after a pause must be correct, before any timer has fired; therefore this
		// checks as often as it can.
		for seen := uint32(0); ; {
			if stops := mark.stops(); stops != seen {
				holds := l.Holds(0)
				say(report{Event: "resumed", Holds: holds, State: s.Status().State.String(), Ended: l.Err() != nil, Renewals: renewals.Load()})
				seen = stops
			}
			time.Sleep(200 * time.Microsecond) // a period, not a wait
		}
	}()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		command, key, _ := strings.Cut(lines.Text(), " ")
		switch command {
		case "status":
			say(report{Event: "status", Holds: l.Holds(0), State: s.Status().State.String(), Ended: l.Err() != nil, Renewals: renewals.Load()})
		case "guarded", "unguarded":
			var kv clientv3.KV = cli
			if command == "guarded" {
				guard := l.Guard()
				guard.Alive = nil // it was checked before the pause
				kv = guard.KV(cli)
			}
			go func() {
				say(report{Event: "sending"})
				_, err := kv.Put(ctx, key, "late")
				r := report{Event: "wrote", Name: key}
				if err != nil {
					r.Error = err.Error()
				}
				say(r)
			}()
		}
	}
	os.Exit(0) // the parent has ended, or closed the input
}

// child is a child process, as its parent uses it.
type child struct {
	*etcdtest.Program
	t       *testing.T
	mark    stopMark
	leading report
}

// startChild starts a child and waits until it leads.
func startChild(t *testing.T, o order) *child {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	mark := newMark(t)
	o.Mark = mark.path
	role, err := json.Marshal(o)
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childEnv+"="+string(role))
	c := &child{Program: etcdtest.Run(t, cmd), t: t, mark: mark}
	c.leading = c.await("leading")
	return c
}

// await waits for a report and skips others.
func (c *child) await(event string) (r report) {
	c.t.Helper()
	require.NoError(c.t, json.Unmarshal([]byte(c.Line(`^{"event":"` + event + `".*`)[0]), &r))
	return r
}

// stop halts the process, and marks the stop.
func (c *child) stop() {
	c.t.Helper()
	c.Signal(syscall.SIGSTOP)
	c.mark.stopped(c.t)
}
