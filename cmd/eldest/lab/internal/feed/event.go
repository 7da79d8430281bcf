package feed

import "encoding/json"

// Type says which fields of an Event are set.
type Type string

// The types. A state (Participant, Members, Queue, Elections, Observer) replaces the one before it.
const (
	// Participant is the new state of a participant: Who and Participant are set.
	Participant Type = "participant"
	// Report is what a participant reports of itself: Who and Report.
	Report Type = "report"
	// Sent is a message that a participant has sent, or that etcd sends to it: Who and Message.
	// Then comes Delivered or Lost, and Held before it if it waits for the page's user; in these,
	// only Message.ID is set.
	Sent      Type = "sent"
	Held      Type = "held"
	Delivered Type = "delivered"
	Lost      Type = "lost"
	// Members is the state of etcd's members: Members.
	Members Type = "members"
	// Queue is the queue of an election: Queue.
	Queue Type = "queue"
	// Elections lists the elections of an existing cluster: Elections.
	Elections Type = "elections"
	// Observer is what an observer of the election was told: Who ("observer") and Observer.
	Observer Type = "observer"
	// Acted is an action of the page's user: Action, and Error if it failed.
	Acted Type = "action"
	// Problem is an error that no action caused: Error. The feed goes on.
	Problem Type = "problem"
)

// Event is one event.
type Event struct {
	// Seq counts the events from 1, without gaps. The log sets it.
	Seq int64 `json:"seq"`
	// AtMS is the time since the beginning, in milliseconds. All events of a feed share one clock.
	AtMS float64 `json:"at_ms"`
	Type Type    `json:"type"`
	Who  string  `json:"who,omitempty"`

	Participant *ParticipantState `json:"participant,omitempty"`
	Report      *ParticipantNews  `json:"report,omitempty"`
	Message     *MessageState     `json:"message,omitempty"`
	Members     []MemberState     `json:"members,omitempty"`
	Queue       *QueueState       `json:"queue,omitempty"`
	Elections   []ElectionState   `json:"elections,omitempty"`
	Observer    *ObserverState    `json:"observer,omitempty"`
	Action      *Action           `json:"action,omitempty"`
	Error       string            `json:"error,omitempty"`
}

// Life is the state of a participant's process.
type Life string

// The lives.
const (
	Starting Life = "starting"
	Running  Life = "running"
	Stopped  Life = "stopped" // by SIGSTOP
	Dead     Life = "dead"    // killed, or ended by itself; it can be restarted
	Left     Life = "left"    // it left in good order, and is not shown any more
)

// ParticipantState is everything that the page shows of a participant, besides its reports.
type ParticipantState struct {
	// Kind is one of Kinds.
	Kind Kind `json:"kind"`
	Life Life `json:"life"`
	// Lives counts its processes; Pid is that of the newest, KeeperPid that of its keeper (0: none).
	Lives     int `json:"lives"`
	Pid       int `json:"pid,omitempty"`
	KeeperPid int `json:"keeper_pid,omitempty"`
	// TTLMS is the TTL of its lease; HeartbeatMS the timeout of its heartbeats (0: none).
	TTLMS       float64 `json:"ttl_ms"`
	HeartbeatMS float64 `json:"heartbeat_ms,omitempty"`
	// Cut is the direction in which nothing arrives: "", "both", "requests" or "replies". DelayMS is
	// how late each of its messages arrives. LoseReply means that the next reply will be lost.
	Cut       string  `json:"cut,omitempty"`
	DelayMS   float64 `json:"delay_ms,omitempty"`
	LoseReply bool    `json:"lose_reply,omitempty"`
	// Hold means that all its messages are held until the user releases them; Breakpoints are the
	// kinds of messages that are held otherwise, as in Action.Breakpoints.
	Hold        bool     `json:"hold,omitempty"`
	Breakpoints []string `json:"breakpoints,omitempty"`
	// Rule is the rule of the code that was taken out of this participant ("": none).
	Rule string `json:"rule,omitempty"`
}

// ParticipantNews is one report.
type ParticipantNews struct {
	// Kind is a kind of package oracle: joined, won, suspended, resumed, ended, failed, leaving,
	// resigning, evicted, "sure", "not sure", ...; or "phase", with the core's name of the phase in
	// Text: idle, entering, waiting, proving, leading, ... The time of the event of "sure" and "not
	// sure" is the one at which the check began, also if it was reported later: from it the page
	// concludes that two participants were sure to lead at the same time.
	Kind  string `json:"kind"`
	Token int64  `json:"token,omitempty"`
	Key   string `json:"key,omitempty"`
	Lease string `json:"lease,omitempty"` // in hexadecimal
	Text  string `json:"text,omitempty"`
}

// MessageState is a message between a participant and etcd.
type MessageState struct {
	// ID numbers the messages from 1.
	ID int64 `json:"id"`
	// Kind is request, answer, event or end, as in package transcript. Method is the call's, without
	// its service ("Txn"); Call numbers the calls.
	Kind   string `json:"kind,omitempty"`
	Method string `json:"method,omitempty"`
	Call   int    `json:"call,omitempty"`
	// Text is the message on one line; Lines are all lines if it has more than one.
	Text  string   `json:"text,omitempty"`
	Lines []string `json:"lines,omitempty"`
	// Body is the whole message as JSON, without passwords and tokens.
	Body json.RawMessage `json:"body,omitempty"`
	// Revision is the one in etcd's header, of an answer or event.
	Revision int64 `json:"revision,omitempty"`
	// Renewal means that it belongs to the renewal of a lease, of which there are many.
	Renewal bool `json:"renewal,omitempty"`
}

// The states of a member of etcd.
const (
	MemberLeads   = "leader"
	MemberFollows = "follower"
	MemberStopped = "stopped" // by SIGSTOP
	MemberDown    = "down"
	MemberUnknown = "unknown"
)

// MemberState is the state of one member of etcd.
type MemberState struct {
	Name string `json:"name"`
	// State is one of those above.
	State    string `json:"state"`
	Revision int64  `json:"revision,omitempty"`
	RaftTerm uint64 `json:"raft_term,omitempty"`
	Endpoint string `json:"endpoint,omitempty"`
}

// QueueState is the queue of an election at a revision, the oldest candidate first.
type QueueState struct {
	Election string       `json:"election"`
	Revision int64        `json:"revision"`
	Places   []PlaceState `json:"places"`
	// More is the number of candidates behind the last of Places, of a queue that is too long to show.
	More int `json:"more,omitempty"`
}

// PlaceState is one candidate's key.
type PlaceState struct {
	Key string `json:"key"`
	// Who is the participant, if it is known: of an existing cluster, it is the value.
	Who   string `json:"who,omitempty"`
	Value string `json:"value,omitempty"`
	// Create and Mod are the key's revisions. Create is the token.
	Create int64 `json:"create"`
	Mod    int64 `json:"mod"`
	// Lease is in hexadecimal. LeftMS is the time that it has left, of GrantedMS, when the state was
	// made; -1: unknown.
	Lease     string  `json:"lease"`
	LeftMS    float64 `json:"left_ms"`
	GrantedMS float64 `json:"granted_ms"`
	// Foreign means that the key is in the election's range and is not a candidate's.
	Foreign bool `json:"foreign,omitempty"`
}

// ElectionState is one line of the list of elections.
type ElectionState struct {
	Name       string `json:"name"`
	Candidates int    `json:"candidates"`
	// Leader is the value of the leader's key; Token its create revision; 0: nobody leads.
	Leader string `json:"leader,omitempty"`
	Token  int64  `json:"token,omitempty"`
}

// ObserverState is what an observer was told.
type ObserverState struct {
	// State is led, nobody or unknown.
	State string `json:"state"`
	Token int64  `json:"token,omitempty"`
	Key   string `json:"key,omitempty"`
	Value string `json:"value,omitempty"`
	Why   string `json:"why,omitempty"`
}
