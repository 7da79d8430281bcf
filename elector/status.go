package elector

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/identity"
)

// Role is the state of a node in its election. The zero value is Unknown, so that an empty Status
// claims nothing.
type Role uint8

const (
	// Unknown means that this node does not lead and follows no leader.
	Unknown Role = iota
	// Leading means that this node leads.
	Leading
	// Following means that another node leads, and this node is in the queue or has withdrawn.
	Following
)

// String returns "unknown", "leading" or "following".
func (r Role) String() string {
	switch r {
	case Leading:
		return "leading"
	case Following:
		return "following"
	default:
		return "unknown"
	}
}

// Leader is a leader as seen by a follower. It is a plain, immutable value.
type Leader struct {
	identity.Identity
	// Key is the leader's key and Token its create revision: the tenure.
	Key   string
	Token eldest.Token

	value string
}

// Value returns a copy of the leader's value as stored in etcd, including fields that the codecs of
// package identity do not decode.
func (l Leader) Value() []byte { return []byte(l.value) }

// Status is the state of a node at one moment: leading, with its key and token; following another
// node; or unknown, with the reason. It is in exactly one of these states. It is immutable; the
// zero Status is unknown.
type Status struct {
	role   Role
	own    tenure
	leader Leader
	reason error
	since  time.Time
}

// tenure is a key with its create revision.
type tenure struct {
	key   string
	token eldest.Token
	ttl   time.Duration // granted for the lease
}

// Role returns the node's role.
func (s Status) Role() Role { return s.role }

// Own returns the key and the token of this node's tenure, if it leads.
func (s Status) Own() (key string, token eldest.Token, ok bool) {
	return s.own.key, s.own.token, s.role == Leading
}

// Leader returns the leader that this node follows, if it follows one.
func (s Status) Leader() (Leader, bool) { return s.leader, s.role == Following }

// Since returns when the node entered this state, by its own clock; for the zero Status the zero
// time. If reading the clock showed that a tenure or a position in the queue is over, Since is the
// time of that reading.
func (s Status) Since() time.Time { return s.since }

// Reason returns why this node is unknown; nil otherwise. It wraps one of eldest.ErrClosed (no Run
// is running), eldest.ErrNotRegistered (the first round has no session yet), eldest.ErrNoLeader
// (the queue has no leader yet, or this node is about to lead), eldest.ErrForeignValue (the
// leader's value cannot be decoded), eldest.ErrUnavailable (etcd does not respond), or why the last
// round ended.
func (s Status) Reason() error { return s.reason }

// String returns a text for people and logs.
func (s Status) String() string {
	switch s.role {
	case Leading:
		return fmt.Sprintf("leading with key %q token %d", s.own.key, s.own.token)
	case Following:
		return fmt.Sprintf("following node %q at %q with key %q token %d", s.leader.NodeID, s.leader.Address, s.leader.Key, s.leader.Token)
	default:
		return fmt.Sprintf("unknown: %v", s.reason)
	}
}

// LogValue returns the role and its details for structured logs: of the leading node the key, the
// token, the lease in hex and its granted TTL; of the leader that this node follows also its ID and
// address, with the TTL that it has published.
func (s Status) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("role", s.role.String())}
	switch s.role {
	case Leading:
		attrs = append(attrs, s.own.attrs()...)
	case Following:
		attrs = append(attrs, slog.String("node", s.leader.NodeID), slog.String("address", s.leader.Address))
		attrs = append(attrs, tenure{s.leader.Key, s.leader.Token, s.leader.TTL}.attrs()...)
	default:
		attrs = append(attrs, slog.Any("reason", s.reason))
	}
	return slog.GroupValue(attrs...)
}

// attrs returns a tenure for structured logs. A key ends in its lease.
func (t tenure) attrs() []slog.Attr {
	return []slog.Attr{
		slog.String("key", t.key), slog.Int64("token", int64(t.token)),
		slog.String("lease", t.key[strings.LastIndexByte(t.key, '/')+1:]), slog.Duration("ttl", t.ttl),
	}
}

func leads(key string, token eldest.Token, ttl time.Duration) Status {
	return Status{role: Leading, own: tenure{key, token, ttl}}
}

func follows(l Leader) Status { return Status{role: Following, leader: l} }

func unknown(reason error) Status { return Status{reason: reason} }

// at returns the status as one that began at t.
func (s Status) at(t time.Time) Status {
	s.since = t
	return s
}

// same reports whether both statuses are equal apart from the time at which they began.
func (s Status) same(other Status) bool { return s.at(time.Time{}) == other.at(time.Time{}) }
