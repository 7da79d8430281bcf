package actor

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/instant"
)

// Config is the first line that a participant reads.
type Config struct {
	// Who is the participant's name, of this life only.
	Who string `json:"who"`
	// Contender is the name of a contender.
	Contender string        `json:"contender"`
	Election  string        `json:"election"`
	Endpoints []string      `json:"endpoints"`
	TTL       time.Duration `json:"ttl"`
	// Data is the key that leaders write.
	Data string `json:"data"`
	// Store is the address of the fenced store.
	Store string `json:"store"`
	// Clock is that of the run.
	Clock instant.Clock `json:"clock"`
	// File is where its history goes.
	File string `json:"file"`
	// Tight says that it leaves itself next to no margin; see tight.
	Tight bool `json:"tight,omitempty"`
	// Defect is one of Defects, or empty.
	Defect string `json:"defect,omitempty"`
}

// What a participant can be ordered to do.
const (
	// DoRate sets the rate of its clock; the answer says how fast it ran before.
	DoRate = "rate"
	// DoResign has it resign, or leave the queue, and stand again. The answer comes
	// when its tenure or candidacy is over.
	DoResign = "resign"
	// DoQuit ends it.
	DoQuit = "quit"
)

// Order is a line that a participant reads.
type Order struct {
	Seq  int     `json:"seq"`
	Do   string  `json:"do"`
	Rate float64 `json:"rate,omitempty"`
}

// Standing is where a participant is in its round.
type Standing string

// Idle, waiting in the queue or about to be, leading.
const (
	Idle    Standing = "idle"
	Waiting Standing = "waiting"
	Leading Standing = "leading"
)

// Notice says where the participant stands.
type Notice struct {
	Standing Standing `json:"standing"`
	Lease    int64    `json:"lease,omitempty"`
	Token    int64    `json:"token,omitempty"` // Leading
	Key      string   `json:"key,omitempty"`   // Leading
}

// Answer is what came of an order.
type Answer struct {
	Seq int    `json:"seq"`
	Err string `json:"error,omitempty"`
	// Ran is how fast the clock ran, of DoRate.
	Ran float64 `json:"ran,omitempty"`
	// Left is what is left of a participant that quit.
	Left []string `json:"left,omitempty"`
}

// Line is a line that a participant writes: one of the two.
type Line struct {
	Notice *Notice `json:"notice,omitempty"`
	Answer *Answer `json:"answer,omitempty"`
}

// speaker writes lines from several goroutines.
type speaker struct {
	mu  sync.Mutex
	out *json.Encoder
}

func newSpeaker(out io.Writer) *speaker { return &speaker{out: json.NewEncoder(out)} }

func (s *speaker) say(l Line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.out.Encode(l) // if nobody listens, stdin ends, too
}
