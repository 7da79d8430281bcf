package eldest

// Token names a tenure: the create revision of the leader's key. In one election tokens strictly
// increase from tenure to tenure (G2), so a store that remembers the newest token it has received
// can refuse a late write of an older leader.
//
// Invariant: a Token is positive once its candidate is registered; 0 means none.
type Token int64

// Candidate is one key of an election's queue, as read at one etcd revision. It is a plain value: a
// copy shares only the bytes of Value.
type Candidate struct {
	// Key is the candidate's key: <election>/<lease id in hex>.
	Key string
	// Lease is the etcd lease that Key names. The candidate leaves the queue when that lease ends.
	Lease int64
	// Token is the create revision of Key and the candidate's position in the queue: lower is
	// older.
	Token Token
	// ModRevision is the mod revision of Key, which increases with each proclaim; 0 if the reply
	// did not contain it.
	ModRevision int64
	// Value is what the candidate proclaimed: opaque bytes, binary safe; nil if the reply did not
	// contain it (keys-only reads). The caller that receives the Candidate owns the bytes: no
	// function of Eldest returns the same bytes to two callers.
	Value []byte
}

// Leader is the candidate with the lowest create revision, the eldest.
type Leader = Candidate

// Kind is the kind of answer that a State is. The zero value is Unknown, so that an empty State
// claims nothing.
type Kind uint8

const (
	// Unknown means that etcd is unavailable or has not answered yet; State.Reason has the cause.
	Unknown Kind = iota
	// Nobody means that at State.Revision the queue was empty.
	Nobody
	// Led means that at State.Revision State.Leader led.
	Led
)

// String returns "unknown", "nobody" or "led".
func (k Kind) String() string {
	switch k {
	case Nobody:
		return "nobody"
	case Led:
		return "led"
	default:
		return "unknown"
	}
}

// State is an observer's view of an election at one moment. It has three kinds because "no
// candidate leads" and "the leader is unknown" are different answers (G6).
type State struct {
	// Kind determines which of the other fields are set.
	Kind Kind
	// Leader is the leader when Kind is Led, else the zero Candidate.
	Leader Leader
	// Revision is the etcd revision at which this was true; 0 when Unknown.
	Revision int64
	// Reason is why the state is Unknown; nil otherwise.
	Reason error
}
