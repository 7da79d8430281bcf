package concurrency

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/core"
	"github.com/eldest-io/eldest/keys"
)

// The errors of elections.
var (
	// ErrElectionNotLeader is returned by Proclaim when this election does not lead, or not any
	// more. The error of a campaign that ends before its win wraps it.
	ErrElectionNotLeader = errors.New("election: not leader")
	// ErrElectionNoLeader is returned by Leader when there is no candidate.
	ErrElectionNoLeader = errors.New("election: no leader")
)

// Election is the participation of one session in an election. It is made by NewElection or
// ResumeElection. All methods are safe for concurrent use.
type Election struct {
	session *Session
	name    string

	mu sync.Mutex // taken after that of the session's candidates
	// token and own are the token and the key with which this election is queued or leads; token is
	// 0 if it does neither. won is true if it leads; calls counts the campaigns in progress.
	token eldest.Token
	own   string
	won   bool
	calls int
	key   string
	rev   int64
	hdr   *pb.ResponseHeader
}

// NewElection returns the election of the keys under pfx + "/". It sends nothing.
func NewElection(s *Session, pfx string) *Election { return &Election{session: s, name: pfx} }

// ResumeElection returns an election that s already leads, with leaderKey, of create revision
// leaderRev. If s has another lease than the key (see WithLease), the first Proclaim binds the key
// to the lease of s. ResumeElection sends nothing; the key is watched, like that of other leaders,
// from the first Proclaim on.
//
// pfx is that of NewElection. A prefix with the slash that etcd's package needs here is accepted as
// well, if leaderKey shows that it is meant so.
func ResumeElection(s *Session, pfx string, leaderKey string, leaderRev int64) *Election {
	if name, ok := strings.CutSuffix(pfx, "/"); ok {
		if _, err := keys.Parse(name, leaderKey); err == nil {
			pfx = name
		}
	}
	e := &Election{session: s, name: pfx, key: leaderKey, rev: leaderRev}
	if leaderKey != "" && leaderRev > 0 {
		e.token, e.own, e.won = eldest.Token(leaderRev), leaderKey, true
	}
	return e
}

// Campaign campaigns with a value and blocks until this session leads. If the session already leads
// or is queued, by this election or another one with the same prefix, the campaign joins that
// candidacy and proclaims the value, unless the key has a later value by then.
//
// If ctx ends before the win, Campaign returns ctx's error, and the key has been deleted; if etcd
// does not confirm that within a second, or 3 s during the registration, the key is deleted in the
// background. This also holds after every other error: ErrElectionNotLeader, wrapped with the
// reason, if the key is deleted by others or the session is lost meanwhile; or etcd's error, if
// etcd refuses. If the session was lost before the call, the error is rpctypes.ErrLeaseNotFound,
// not wrapped. While etcd is unavailable Campaign waits. A position in the queue from before the
// call, or of another call, is kept.
func (e *Election) Campaign(ctx context.Context, val string) error {
	e.mu.Lock()
	e.calls++
	e.mu.Unlock()
	err := e.session.win(ctx, e.name, core.Lead, &val, e)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.calls--; err == nil {
		return nil
	}
	if e.calls == 0 && !e.won {
		e.drop()
	}
	if errors.Is(err, errGone) {
		err = fmt.Errorf("%w: %w", ErrElectionNotLeader, err)
	}
	return err
}

// stands implements handle.
func (e *Election) stands(c *candidacy, token eldest.Token) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.token != token || e.own != c.name.Key {
		e.drop()
		e.token, e.own = token, c.name.Key
	}
}

// wins implements handle.
func (e *Election) wins(c *candidacy, token eldest.Token, header *pb.ResponseHeader) {
	e.stands(c, token)
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.won || c.led == 0 {
		c.hold(true)
	}
	e.won, e.key, e.rev, e.hdr = true, e.own, int64(token), header
}

// drop clears the key. The caller holds mu.
func (e *Election) drop() { e.token, e.own, e.key, e.won = 0, "", "", false }

// lose clears the key if it still has this token.
func (e *Election) lose(token eldest.Token) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.token == token {
		e.drop()
	}
}

// present returns the key of this election.
func (e *Election) present() (own string, token eldest.Token, won bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.own, e.token, e.won
}

// Proclaim replaces the value, in one request, of the leader or, during a campaign, of the waiting
// candidate. It blocks until etcd has responded, ctx ends or the session is lost. After the
// leadership is lost it returns ErrElectionNotLeader, each time. Proclaim binds the key to the
// session's lease, even a key that was resumed and had another lease.
func (e *Election) Proclaim(ctx context.Context, val string) error {
	key, token, won := e.present()
	if token == 0 {
		return ErrElectionNotLeader
	}
	s := e.session
	if s.lost() != nil {
		e.lose(token)
		return ErrElectionNotLeader
	}
	c, done := s.candidacy(e.name, key)
	defer done()
	hdr, err := c.proclaim(ctx, token, val, won)
	switch {
	case err == nil:
		e.mu.Lock()
		defer e.mu.Unlock()
		e.hdr = hdr
		return nil
	case errors.Is(err, eldest.ErrDeposed), ctx.Err() == nil && s.lost() != nil:
		e.lose(token)
		return ErrElectionNotLeader
	}
	return plain(ctx, s.client, err)
}

// Resign deletes the key of a leader or, during a campaign, of the waiting candidate, and the next
// candidate leads. It blocks until etcd has confirmed that, for at most the session's TTL, or until
// ctx ends. On error the session may still lead, and Resign can be called again; if the key turns
// out to be deleted, the session of a leader ends. Without a candidacy Resign does nothing.
func (e *Election) Resign(ctx context.Context) error {
	key, token, won := e.present()
	if token == 0 {
		return nil
	}
	hdr, err := e.session.resign(ctx, e.name, key, token, won)
	if err != nil {
		return plain(ctx, e.session.client, err)
	}
	e.lose(token)
	e.mu.Lock()
	defer e.mu.Unlock()
	if hdr != nil {
		e.hdr = hdr
	}
	return nil
}

// Leader reads the present leader, and returns the leader's key as the only one of the response. It
// blocks until etcd has responded or ctx ends. If there is no leader, it returns
// ErrElectionNoLeader.
func (e *Election) Leader(ctx context.Context) (*clientv3.GetResponse, error) {
	client := e.session.client
	var resp *clientv3.GetResponse
	err := policy(client).Until(ctx, func(once context.Context) (err error) {
		resp, err = first(once, client, e.name)
		return err
	})
	if err != nil {
		return nil, plain(ctx, client, err)
	}
	if len(resp.Kvs) == 0 {
		return nil, ErrElectionNoLeader
	}
	return resp, nil
}

// Key returns the leader's key, from the win until Resign, until Proclaim has reported the loss, or
// until a later campaign has registered another life of the key; empty otherwise. It says nothing
// about the session, which may have ended: see Session.Done.
func (e *Election) Key() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.key
}

// Rev returns the create revision of the leader's key: the token that distinguishes this tenure
// from all others. It remains after the end.
func (e *Election) Rev() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.rev
}

// Header returns the header of etcd's last response to a campaign that was won, a proclaim or a
// resignation of this election; nil before that.
func (e *Election) Header() *pb.ResponseHeader {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.hdr
}
