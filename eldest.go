package eldest

// Token names a tenure: the create revision of the leader's key. In one
// election tokens strictly increase from tenure to tenure (G2), so a store that
// remembers the newest token it has seen can refuse a late write of an older
// leader.
//
// Invariant: a Token is positive once its candidate is registered; 0 is "none".
type Token int64

// Candidate is one key of an election's queue, as read at one etcd revision. It
// is a plain value: copying it copies everything but the bytes of Value.
type Candidate struct {
	// Key is the candidate's key: <election>/<lease id in hex>.
	Key string
	// Lease is the etcd lease that Key names. The candidate leaves the queue
	// when that lease ends.
	Lease int64
	// Token is the create revision of Key and the candidate's place in the
	// queue: lower is older.
	Token Token
	// ModRevision is the mod revision of Key: it grows with each proclaim.
	// 0 where the reply did not carry it.
	ModRevision int64
	// Value is what the candidate proclaimed: opaque bytes, binary safe. nil
	// where the reply did not carry it (keys-only reads). Whoever was given the
	// Candidate owns the bytes: no function of Eldest gives the same ones out twice.
	Value []byte
}

// Leader is the candidate with the lowest create revision, the eldest.
type Leader = Candidate

// Kind says what a State knows. The zero value is Unknown, so that a State that
// nobody filled in claims nothing.
type Kind uint8

const (
	// Unknown says that etcd cannot be asked, or has not answered yet; State.Reason
	// says why.
	Unknown Kind = iota
	// Nobody says that at State.Revision the queue was empty.
	Nobody
	// Led says that at State.Revision State.Leader led.
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

// State is what an observer knows of an election at one moment. It is
// three-valued on purpose: "nobody leads" and "I do not know" are different
// answers (G6).
type State struct {
	// Kind says which of the other fields mean something.
	Kind Kind
	// Leader is the leader when Kind is Led, else the zero Candidate.
	Leader Leader
	// Revision is the etcd revision at which this was true; 0 when Unknown.
	Revision int64
	// Reason says why the state is Unknown; nil otherwise.
	Reason error
}
