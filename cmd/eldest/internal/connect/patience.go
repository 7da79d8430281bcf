package connect

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/hooks"
	"github.com/eldest-io/eldest/lease"
)

// Notice reports that a command waits for etcd, and that the wait is over. Without it the command
// would seem to hang: sessions and candidates repeat a failed request without an error.
type Notice struct {
	Conn *Flags
	// Say writes a line to stderr. It must not block.
	Say func(string)

	mu sync.Mutex
	// refused is when the first of the latest attempts in a row was answered with an error; zero if
	// the latest attempt was not answered.
	refused time.Time
	said    time.Time // when the latest line was written; zero after "etcd answers"
}

const (
	// Passing is how long etcd may refuse before that is reported. Most temporary errors have passed
	// at the next attempt, and a permanent one ends the command.
	Passing = 2 * time.Second
	// repeatNotice is the time between two lines.
	repeatNotice = 30 * time.Second
)

// failed is called for an attempt that failed and is repeated.
func (n *Notice) failed(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	text := "waiting for etcd at %s (%s); SIGINT ends the wait"
	if Silent(err) {
		n.refused = time.Time{}
	} else {
		text = "etcd at %s refuses requests for now (%s); SIGINT ends the wait"
		if n.refused.IsZero() {
			n.refused = time.Now()
		}
		if time.Since(n.refused) < Passing {
			return
		}
	}
	if time.Since(n.said) > repeatNotice {
		n.said = time.Now()
		n.Say(fmt.Sprintf(text, n.Conn.addresses(), n.Conn.Why(err)))
	}
}

// answered is called when a request has succeeded.
func (n *Notice) answered() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.said.IsZero() {
		n.Say("etcd answers")
	}
	n.refused, n.said = time.Time{}, time.Time{}
}

// Hooks returns the hooks of a session and a candidate that feed the notice.
func (n *Notice) Hooks() hooks.Set {
	return hooks.Set{
		Session: lease.Hooks{
			Retrying: func(e lease.RetryingEvent) {
				if e.Op == "open session" {
					n.failed(e.Err)
				}
			},
			Opened: func(lease.OpenedEvent) { n.answered() },
		},
		Candidate: election.Hooks{
			Retrying: func(e election.RetryingEvent) {
				switch e.Op {
				case "register":
					n.failed(e.Err)
				case "find predecessor", "read queue":
					if !Silent(e.Err) { // the session's renewals fail as well, and lease.Hooks.AtRisk reports that
						n.failed(e.Err)
					}
				}
			},
			Registered: func(election.RegisteredEvent) { n.answered() },
			Waiting:    func(election.WaitingEvent) { n.answered() },
			Won:        func(election.WonEvent) { n.answered() },
		},
	}
}

// loginPause is the time between two attempts to log in. Each makes etcd check a password, which
// is slow on purpose.
const loginPause = 500 * time.Millisecond

// DialPatiently is Dial for commands that wait while etcd cannot be reached. It blocks until there
// is a client, ctx ends (its cause), or etcd refuses.
func (f *Flags) DialPatiently(ctx context.Context, wait *Notice, more ...grpc.DialOption) (*clientv3.Client, error) {
	for {
		client, err := f.Dial(ctx, more...)
		if err == nil {
			return client, nil
		}
		// Waiting does not correct a wrong password.
		if ctx.Err() != nil || !Silent(err) {
			return nil, err
		}
		wait.failed(err)
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(loginPause):
		}
	}
}
