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
	// ErrElectionNotLeader is returned by Proclaim when this election does not lead, or
	// not any more. What ends a campaign before its win wraps it.
	ErrElectionNotLeader = errors.New("election: not leader")
	// ErrElectionNoLeader is returned by Leader when nobody stands.
	ErrElectionNoLeader = errors.New("election: no leader")
)

// Election is an election as one session takes part in it. Made by NewElection or
// ResumeElection. All methods are safe for concurrent use.
type Election struct {
	session *Session
	name    string

	mu sync.Mutex // taken after that of the session's candidates
	// token is that of the key with which this election is queued or leads, and own that key;
	// 0 if it does neither. won says that it leads, calls how many campaigns are under way.
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

// ResumeElection returns an election that is led already, with leaderKey, of create
// revision leaderRev, by s. Where s has not the key's lease (see WithLease), the first
// Proclaim binds the key to that of s. It sends nothing; the key is watched, as that of
// other leaders, from the first Proclaim on.
//
// pfx is that of NewElection. One with the slash that etcd's package needs here is
// understood as well, where leaderKey shows that it is meant so.
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

// Campaign stands for election with a value and blocks until this session leads. Where it
// leads or stands already, by this election or another one with the same prefix, the
// campaign takes that place and proclaims the value, unless a later one is there by then.
//
// When ctx ends before the win it returns ctx's error, and the key is gone; where etcd does
// not say so within a second, or 3 s during the registration, it is removed in the background. So it is after every other
// error: ErrElectionNotLeader, wrapped with the reason, when somebody takes the key away or
// the session is lost meanwhile, and what etcd refused. Of a session that was lost before it
// is rpctypes.ErrLeaseNotFound, bare. While etcd is away it waits. A place that was taken
// before the call, or by another call, is kept.
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
func (e *Election) wins(c *candidacy, token eldest.Token) {
	e.stands(c, token)
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.won || c.led == 0 {
		c.hold(true)
	}
	e.won, e.key, e.rev, e.hdr = true, e.own, int64(token), c.registered
}

// drop forgets the key. The caller holds mu.
func (e *Election) drop() { e.token, e.own, e.key, e.won = 0, "", "", false }

// lose forgets the key if it has this token still.
func (e *Election) lose(token eldest.Token) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.token == token {
		e.drop()
	}
}

// present is the key of this election.
func (e *Election) present() (own string, token eldest.Token, won bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.own, e.token, e.won
}

// Proclaim replaces the value, in one request, of the leader or, during a campaign, of the
// waiting candidate. It blocks until etcd has answered, ctx ends or the session is lost.
// When the leadership is lost it returns ErrElectionNotLeader, each time. The key is bound
// to the session's lease by it, also one that was resumed and had another lease.
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

// Resign takes the key away, of a leader or, during a campaign, of the waiting candidate,
// and the next one leads. It blocks until etcd has confirmed that, for at most the session's
// TTL, or until ctx ends. On error it may lead on, and it can be called again; if the key
// turns out to be gone, the session of a leader ends. An election that does not stand has
// nothing to resign.
func (e *Election) Resign(ctx context.Context) error {
	key, token, won := e.present()
	if token == 0 {
		return nil
	}
	c, done := e.session.candidacy(e.name, key)
	defer done()
	hdr, err := c.resign(ctx, token, won)
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

// Leader asks who leads, and returns the leader's key as the only one of the response. It
// blocks until etcd has answered or ctx ends. Nobody: ErrElectionNoLeader.
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

// Key returns the leader's key while this election leads, as far as it knows; empty
// otherwise.
func (e *Election) Key() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.key
}

// Rev returns the create revision of the leader's key: the token by which this tenure is
// told from all others. It stays after the end.
func (e *Election) Rev() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.rev
}

// Header returns the header of etcd's last answer to a campaign that was won, a proclaim
// or a resignation of this election; nil before.
func (e *Election) Header() *pb.ResponseHeader {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.hdr
}
