package httpstatus

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/plain"
	"github.com/eldest-io/eldest/lease"
)

// health answers whether a participant can do its work.
type health struct {
	election string
	grace    time.Duration

	mu      sync.Mutex
	session *lease.Session
	// since is the start of the time without a living session, as far as it is known: when the last
	// one ended or began, or the start of the participant.
	since time.Time
	cause error
	// resting is why there is no session on purpose, until again; "" if that is not so.
	resting string
	again   time.Time
}

func newHealth(election string, grace time.Duration) *health {
	return &health{election: election, grace: grace, since: time.Now()}
}

func (h *health) hooks() lease.Hooks {
	return lease.Hooks{
		Opened: func(e lease.OpenedEvent) {
			if e.Session.Err() == nil || !h.lives() {
				h.use(e.Session)
			}
		},
		Lost: func(e lease.LostEvent) {
			if h.lives() {
				return // the hook was late, and the session is an earlier one
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			h.since, h.cause = time.Now(), e.Cause
		},
	}
}

// lives reports whether the session that health checks has not ended.
func (h *health) lives() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.session != nil && h.session.Err() == nil
}

// use sets the session that health checks from now on.
func (h *health) use(s *lease.Session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.session != s {
		h.session, h.since, h.cause, h.resting = s, time.Now(), nil, ""
	}
}

func (h *health) rest(why string, pause time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.resting, h.again = why, time.Now().Add(pause)
}

// healthAnswer is the body of an answer.
type healthAnswer struct {
	// Status is "ok" or "trouble".
	Status   string `json:"status"`
	Election string `json:"election"`
	// Session is "none" before there is one, then "alive", "at-risk" or "lost".
	Session string `json:"session"`
	// Remaining is for how many seconds the lease is certain.
	Remaining float64 `json:"remaining_seconds"`
	// Without is how many seconds there has been no living session; the code is 503 once it is more
	// than Grace.
	Without float64 `json:"without_session_seconds,omitempty"`
	Grace   float64 `json:"grace_seconds"`
	Reason  string  `json:"reason,omitempty"`
}

// ServeHTTP reads the clock and answers 200 or 503, with the reason.
func (h *health) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	a, code := h.judge()
	answer(w, code, a)
}

func (h *health) judge() (healthAnswer, int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := healthAnswer{Status: "ok", Election: h.election, Session: "none", Grace: h.grace.Seconds()}
	if h.session != nil {
		now := h.session.Status()
		a.Session, a.Remaining = now.State.String(), now.Remaining.Seconds()
		if now.State != lease.Lost {
			return a, http.StatusOK
		}
		if h.cause == nil { // the hook is called a moment later
			h.since, h.cause = time.Now(), now.Cause
		}
	}
	switch {
	case h.resting != "":
		a.Reason = fmt.Sprintf("the next campaign starts in %.1f s: %s", max(0, time.Until(h.again).Seconds()), h.resting)
	case h.cause != nil:
		a.Reason = h.cause.Error()
		if op, ok := errors.AsType[*eldest.OpError](h.cause); ok {
			a.Reason = op.Err.Error()
		}
	default:
		a.Reason = "no session yet: etcd has not granted a lease"
	}
	without := time.Since(h.since)
	a.Without = without.Seconds()
	if without > h.grace {
		a.Status = "trouble"
		return a, http.StatusServiceUnavailable
	}
	return a, http.StatusOK
}

// answer writes a JSON object.
func answer(w http.ResponseWriter, code int, body any) {
	line, _ := json.Marshal(body) // texts and numbers: it cannot fail
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, plain.JSON(string(line))+"\n") // a client that has disconnected needs no answer
}
