package elector

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/identity"
)

// Role is what a node is in its election. The zero value is Unknown, so that a
// Status that nobody filled in claims nothing.
type Role uint8

const (
	// Unknown says that this node does not lead and knows of nobody who does.
	Unknown Role = iota
	// Leading says that this node leads.
	Leading
	// Following says that this node stands in the queue and another one leads.
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

// Leader is a leader as a follower knows it. It is a plain, immutable value.
type Leader struct {
	identity.Identity
	// Key is the leader's key and Token its create revision: the tenure.
	Key   string
	Token eldest.Token

	value string
}

// Value returns a copy of the leader's value as it stands in etcd, with what a codec
// of ours does not know.
func (l Leader) Value() []byte { return []byte(l.value) }

// Status is what a node is at one moment: the leader, with its key and token, or a
// follower of somebody else, or unknown, with the reason; never two of them. It is
// immutable; the zero Status is unknown.
type Status struct {
	role   Role
	own    tenure
	leader Leader
	reason error
	since  time.Time
}

// tenure is a key in one of its lives.
type tenure struct {
	key   string
	token eldest.Token
}

// Role says which of the three it is.
func (s Status) Role() Role { return s.role }

// Own returns the key and the token of this node's tenure, if it leads.
func (s Status) Own() (key string, token eldest.Token, ok bool) {
	return s.own.key, s.own.token, s.role == Leading
}

// Leader returns whom this node follows, if it follows.
func (s Status) Leader() (Leader, bool) { return s.leader, s.role == Following }

// Since returns when the node became what the Status says, by its own clock; of the
// zero Status it is the zero time. A tenure or a place in the queue that a look at the
// clock found to be over is over since that look.
func (s Status) Since() time.Time { return s.since }

// Reason returns why this node is unknown; nil otherwise. It wraps one of
// eldest.ErrClosed (no Run is going on), eldest.ErrNotRegistered (the first round has no
// session yet), eldest.ErrNoLeader (the queue has no
// leader yet, or this node is about to be it), eldest.ErrForeignValue (somebody leads
// whose value cannot be read), eldest.ErrUnavailable (etcd does not answer), or why the
// last round ended.
func (s Status) Reason() error { return s.reason }

// String is for people and logs.
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

// LogValue gives structured logs the role, and what goes with it.
func (s Status) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("role", s.role.String())}
	switch s.role {
	case Leading:
		attrs = append(attrs, slog.String("key", s.own.key), slog.Int64("token", int64(s.own.token)))
	case Following:
		attrs = append(attrs, slog.String("node", s.leader.NodeID), slog.String("address", s.leader.Address),
			slog.String("key", s.leader.Key), slog.Int64("token", int64(s.leader.Token)))
	default:
		attrs = append(attrs, slog.Any("reason", s.reason))
	}
	return slog.GroupValue(attrs...)
}

func leads(key string, token eldest.Token) Status {
	return Status{role: Leading, own: tenure{key, token}}
}

func follows(l Leader) Status { return Status{role: Following, leader: l} }

func unknown(reason error) Status { return Status{reason: reason} }

// at returns the status as one that began at t.
func (s Status) at(t time.Time) Status {
	s.since = t
	return s
}

// same reports whether both say the same, whenever they began.
func (s Status) same(other Status) bool { return s.at(time.Time{}) == other.at(time.Time{}) }
