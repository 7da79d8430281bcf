package core

import "github.com/eldest-io/eldest"

// Phase is the phase of a candidacy.
type Phase uint8

// The phases. A key of the candidate exists in etcd, as far as the candidate knows, from
// Waiting to Leaving.
const (
	// Idle: the candidate has no key and wants none.
	Idle Phase = iota
	// Entering: a registration is sent until its outcome is known.
	Entering
	// Waiting: the key exists. An older one existed, which is watched; or the user wants only a
	// place in the queue.
	Waiting
	// Proving: the nearest older key is deleted. etcd is asked which candidates are older now.
	Proving
	// Leading: the key was the oldest one at a revision at which it existed (G1).
	Leading
	// Draining: the candidate does not lead, and the key still exists: leadership was given up, or
	// the user keeps the key.
	Draining
	// Leaving: the key is being deleted.
	Leaving
	// Lost: the session has ended, and the key is deleted with its lease.
	Lost

	phases
)

// String returns the name in lower case.
func (p Phase) String() string {
	return [phases]string{"idle", "entering", "waiting", "proving", "leading", "draining", "leaving", "lost"}[p]
}

// Want is what the user of a candidate wants.
type Want uint8

const (
	// Nothing means: no key.
	Nothing Want = iota
	// Queue means: a place in the queue, without leading yet.
	Queue
	// Lead means: to lead, and to wait for it.
	Lead
	// LeadNow means: to lead if no other candidate exists, and not to wait.
	LeadNow
)

// String returns the name in lower case.
func (w Want) String() string { return [...]string{"nothing", "queue", "lead", "lead now"}[w] }

// Elder is the key of an older candidate.
type Elder struct {
	Key   string
	Token eldest.Token
}

// Position is a place in the queue at one revision.
type Position struct {
	// Revision is the revision at which the other fields were true.
	Revision int64
	// Elders are the nearest older candidates, the nearest one first.
	Elders []Elder
	// Complete is true if no other older candidate exists.
	Complete bool
}

// Candidate is the state of one candidate: of one key, bound to one lease. The zero value
// is a candidate that never campaigned. It is a plain value; Step never changes the
// elements of Elders.
//
// Invariants:
//   - A candidate never leads or waits again with a token up to Doomed: the deletion of that key
//     may be under way (G2).
//   - At most one request is under way, and none while Paused.
type Candidate struct {
	Phase Phase
	// Want is what the candidate continues with after Leaving.
	Want Want
	// Token is the create revision of the key. In Leaving, 0 means that it is not known whether a
	// key exists.
	Token eldest.Token
	// Position is where the candidate waits.
	Position Position
	// Doomed is the newest token that was given up.
	Doomed eldest.Token
	// Unsure is true if a key may exist although none is known: a registration was not answered, or
	// the lease was resumed.
	Unsure bool
	// Yields is true if before a win the user is asked whether another candidate is to lead.
	Yields bool
	// Beats is true if the session has heartbeats. Then only the answer to Look or Survey, which
	// the loop requests in a stretch, proves a win.
	Beats bool
	// Owed is true if the outcome of a registration was never learnt. It may be carried out for as
	// long as the lease exists.
	Owed bool
	// Unwatched is true if the user need not be notified when the key is deleted, once it leads.
	Unwatched bool
	// Asked is the request under way, or the one to be sent after the pause.
	Asked Ask
	// Paused is true if the last request failed, and the next one waits for Due.
	Paused bool
	// Cause is why the last candidacy ended; nil before that.
	Cause error
}

// Request is a kind of request.
type Request uint8

// The requests. Only the loop encodes them.
const (
	// None: there is no request.
	None Request = iota
	// Register creates the key, unless it exists, and reads the elders.
	Register
	// RegisterAlone creates the key only if the queue is empty.
	RegisterAlone
	// Look reads the candidate's key and its elders at one revision.
	Look
	// Survey reads the whole queue, and lets the user decide whether to yield.
	Survey
	// Delete deletes the key, if it has the token.
	Delete
)

// String returns the name in lower case.
func (r Request) String() string {
	return [...]string{"none", "register", "register alone", "look", "survey", "delete"}[r]
}

// Ask is one request.
type Ask struct {
	Request Request
	// Token is the life of the key that Delete, Look and Survey are about; 0 in Look: any.
	Token eldest.Token
	// At is the revision that Look asks for; 0: the newest.
	At int64
}

// Resumed returns the state of a candidate whose session was abandoned and whose lease was resumed:
// earlier requests may still be carried out.
func (c Candidate) Resumed() Candidate {
	return Candidate{Doomed: c.Doomed, Owed: c.Owed, Unsure: true, Yields: c.Yields, Beats: c.Beats}
}
