package feed

// Kind is a kind of participant.
type Kind string

// The kinds.
const (
	Eldest      Kind = "eldest"      // this project
	Heartbeats  Kind = "heartbeats"  // with heartbeats of one second
	Keeper      Kind = "keeper"      // with a keeper
	Concurrency Kind = "concurrency" // etcd's own package
	Herd        Kind = "herd"        // the naive protocol: every candidate watches everything
)

// Kinds are all kinds, in the order in which the page offers them.
var Kinds = []Kind{Eldest, Heartbeats, Keeper, Concurrency, Herd}

// The actions, by what they need.
const (
	// Add starts a participant of the kind Kind; with Rule, one from whose code that rule was taken
	// out. Its name is the next free one: p1, p2, ...
	Add = "add"

	// On a participant, On:
	Resign      = "resign"       // it resigns, or leaves the queue, and campaigns again
	Leave       = "leave"        // it leaves the election, and its process ends
	Kill        = "kill"         // SIGKILL
	Restart     = "restart"      // a new process after a kill
	Stop        = "stop"         // SIGSTOP
	Continue    = "continue"     // SIGCONT
	Cut         = "cut"          // Way: both, requests or replies; what is lost stays lost
	Delay       = "delay"        // each message arrives MS late; 0: no more
	Heal        = "heal"         // ends cut, delay and the lost reply
	LoseReply   = "lose-reply"   // the next reply to a request that may write is lost, and its call fails
	DeleteKey   = "delete-key"   // an operator deletes its key or, without On, the key Key
	RevokeLease = "revoke-lease" // an operator revokes its lease
	Transfer    = "transfer"     // leadership is transferred to it
	Hold        = "hold"         // every message waits in the page
	Unhold      = "unhold"       // ends Hold and removes breakpoints; what is held is released
	Breakpoint  = "breakpoint"   // Breakpoints: messages of these kinds wait in the page, such as "Txn request"
	// SetRule restarts it without the rule Rule, or with all rules if Rule is "".
	SetRule = "rule"

	// On a held message, Message; or, in a scenario, on the oldest held message of On whose kind is
	// Match, such as "Txn answer" ("": any kind). An action that finds none waits a few seconds.
	Release = "release"
	Drop    = "drop" // it is lost, and its call fails

	// On a member of etcd, Member (from 0):
	MemberKill     = "member-kill"
	MemberStop     = "member-stop"
	MemberContinue = "member-continue"
	MemberRestart  = "member-restart"
	MoveLeader     = "move-leader" // etcd's leader moves to it

	// On the cluster:
	Compact = "compact"

	// On everything:
	Reset = "reset" // plays the beginning again: a scenario that adds the participants of the beginning

	// Play is only in events: the page begins anew at an event Acted whose action is this one, and at
	// no other. Such an event comes at the beginning of each scenario, also of the one of Reset, whose
	// own event comes later. All participants have left then, and the next one is p1 again. If it has
	// no Error, the queue is empty as well. The states of the members and the observer stay.
	Play = "play"

	// On an existing cluster, with --write, there are this one and Transfer. Election, Key and Token
	// name the candidate whose key is deleted, or which is to lead.
	Evict = "evict"
)

// Action is something that the user does. Which fields are needed is said above.
type Action struct {
	Do          string   `json:"do"`
	On          string   `json:"on,omitempty"`
	Kind        Kind     `json:"kind,omitempty"`
	Rule        string   `json:"rule,omitempty"`
	Way         string   `json:"way,omitempty"`
	MS          float64  `json:"ms,omitempty"`
	Breakpoints []string `json:"breakpoints,omitempty"`
	Message     int64    `json:"message,omitempty"`
	Match       string   `json:"match,omitempty"`
	Member      int      `json:"member,omitempty"`
	Election    string   `json:"election,omitempty"`
	Key         string   `json:"key,omitempty"`
	Token       int64    `json:"token,omitempty"`
}

// Scenario is a list of actions to be played.
type Scenario struct {
	Name  string `json:"name,omitempty"`
	Steps []Step `json:"steps"`
}

// Step is an action, and the time before it: since the step before it, or since the beginning.
type Step struct {
	AfterMS float64 `json:"after_ms"`
	Action
}

// Rule is a rule of the protocol that can be taken out of a participant, to see what it is for.
type Rule struct {
	Name string `json:"name"`
	// Text says what the participant does not do then, in a sentence.
	Text string `json:"text"`
	// Kinds are the kinds of participants to which it applies.
	Kinds []Kind `json:"kinds"`
}

// Info is what the page needs to know at its start.
type Info struct {
	// Mode is sandbox or cluster. Write means that a cluster may be changed.
	Mode  string `json:"mode"`
	Write bool   `json:"write"`
	// Election is the sandbox's; of a cluster, the one that is shown first ("": all).
	Election string `json:"election,omitempty"`
	// Endpoints are those of the cluster.
	Endpoints []string `json:"endpoints"`
	Version   string   `json:"version"`
	Kinds     []Kind   `json:"kinds,omitempty"`
	Rules     []Rule   `json:"rules,omitempty"`
}
