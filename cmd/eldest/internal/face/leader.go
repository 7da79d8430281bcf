package face

import (
	"net/http"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/identity"
)

// candidacy answers at /leader for a candidate; before there is one, it is neither.
type candidacy struct {
	face      *Face
	candidate *election.Candidate
	value     string
}

// leaderAnswer is the body of an answer: that of a curator's role handler.
type leaderAnswer struct {
	Role string `json:"role"`
	// Node is what this candidate says of itself.
	Node string `json:"node"`
	// Leader is what the leader says of itself, Address where it takes requests, if it
	// says so, and Token its tenure. Empty and 0 while nobody is known.
	Leader  string `json:"leader"`
	Address string `json:"address"`
	Token   int64  `json:"token"`
}

// serveLeader hands on to whoever knows.
func (f *Face) serveLeader(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	leader := f.leader
	f.mu.Unlock()
	leader.ServeHTTP(w, r)
}

// ServeHTTP answers from the status at this moment.
func (c *candidacy) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	a := leaderAnswer{Role: "neither", Node: c.value}
	var now election.Status
	if c.candidate != nil {
		now = c.candidate.Status()
	}
	c.face.mu.Lock()
	observer := c.face.observer
	c.face.mu.Unlock()
	switch {
	case now.Leading:
		a.Role, a.Leader, a.Token = "leading", c.value, int64(now.Token)
		answer(w, http.StatusOK, a)
		return
	case now.Token == 0 || observer == nil:
	default:
		// A follower follows somebody: not itself, whose win is not proven yet.
		if state := observer.State(); state.Kind == eldest.Led && state.Leader.Token != now.Token {
			a.Role, a.Token = "following", int64(state.Leader.Token)
			a.Leader, a.Address = whoIs(state.Leader.Value)
		}
	}
	answer(w, http.StatusServiceUnavailable, a)
}

// whoIs reads a leader's value: that of a node of a service, or any other.
func whoIs(value []byte) (name, address string) {
	if node, err := (identity.Protobuf{}).Decode(value); err == nil && node.NodeID != "" && node.TTL > 0 {
		return node.NodeID, node.Address
	}
	return string(value), ""
}
