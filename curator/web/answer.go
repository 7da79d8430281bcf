package web

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// refusal is the body of an answer that a node gives in the service's place.
type refusal struct {
	Election       string `json:"election"`
	Node           string `json:"node"`
	Reason         string `json:"reason"`
	NothingApplied bool   `json:"nothing_applied"`
}

// Refuse answers a request in the place of a handler that received the end of its tenure, for
// example as a refusal by the tenure's guard. nothingApplied must be true only if the request has
// changed nothing; only the handler can decide this. The answer is 503 with Retry-After if so, and
// 502 if not, with the reason in a JSON object. Refuse must be called before anything is written to
// w.
func (f *Front) Refuse(w http.ResponseWriter, reason error, nothingApplied bool) {
	code := http.StatusBadGateway
	if nothingApplied {
		code = http.StatusServiceUnavailable
	}
	f.refuse(w, code, nothingApplied, reason)
}

func (f *Front) refuse(w http.ResponseWriter, code int, untouched bool, reason error) {
	text := "unknown"
	if reason != nil {
		text = reason.Error()
	}
	body, _ := json.Marshal(refusal{f.cfg.Election, f.cfg.NodeID, text, untouched}) // only strings and a bool: it cannot fail
	header := w.Header()
	for _, key := range []string{"Content-Encoding", "Etag", "Last-Modified"} {
		header.Del(key) // they describe an answer that is not sent
	}
	body = append(body, '\n')
	header.Set("Content-Length", strconv.Itoa(len(body))) // it is complete, also if the tenure ends now
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	if code == http.StatusServiceUnavailable {
		header.Set("Retry-After", "1")
	}
	w.WriteHeader(code)
	_, _ = w.Write(body) // fails if the caller has disconnected
}

// early prepares w for an answer that is given before the request's body was read. By default,
// net/http's HTTP/1 server reads some of the body first, for as long as the caller takes. With
// EnableFullDuplex it does not, but then it can serve no other request on the connection (as of Go
// 1.26 it panics at the next one), so the connection is closed.
func early(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 && r.ContentLength != 0 && http.NewResponseController(w).EnableFullDuplex() == nil {
		w.Header().Set("Connection", "close")
	}
}

// linger reads, for at most lingering, the rest of a body whose early answer is written. Otherwise
// the server closes the connection while the caller writes, and the caller may see that instead of
// the answer, because the transport's last read, which is still under way, is aborted when the
// handler returns.
func linger(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 && r.ContentLength != 0 {
		connection := http.NewResponseController(w)
		_ = connection.Flush()
		_ = connection.SetReadDeadline(time.Now().Add(lingering))
		_, _ = io.CopyN(io.Discard, r.Body, 256<<10)
	}
}

// lingering bounds linger.
const lingering = 500 * time.Millisecond

// answer is a handler's ResponseWriter that records whether an answer was begun. It is for one
// goroutine at a time, as ResponseWriters are.
type answer struct {
	http.ResponseWriter
	tenure context.Context

	begun    bool
	inTenure bool // it was begun before the tenure ended
	bare     bool // it has no body
	open     bool // the caller cannot distinguish its end from a part of it
	hijacked bool
}

// begin reads the header: what is changed in it later is not sent.
func (a *answer) begin() {
	if !a.begun {
		a.begun, a.inTenure = true, a.tenure.Err() == nil
		a.open = !a.bare && a.Header().Get("Content-Length") == ""
	}
}

// WriteHeader begins the answer, unless the code is an interim one.
func (a *answer) WriteHeader(code int) {
	if code >= http.StatusOK || code == http.StatusSwitchingProtocols {
		a.bare = a.bare || code == http.StatusNoContent || code == http.StatusNotModified
		a.begin()
	}
	a.ResponseWriter.WriteHeader(code)
}

// Write begins the answer; see http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	a.begin()
	return a.ResponseWriter.Write(p)
}

// ReadFrom begins the answer; see io.ReaderFrom.
func (a *answer) ReadFrom(src io.Reader) (int64, error) {
	a.begin()
	return io.Copy(a.ResponseWriter, src)
}

// Flush begins the answer; see http.Flusher.
func (a *answer) Flush() { _ = a.FlushError() }

// FlushError is Flush for http.ResponseController.
func (a *answer) FlushError() error {
	a.begin()
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Hijack gives the connection to the handler; see http.Hijacker.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(a.ResponseWriter).Hijack()
	a.hijacked = err == nil
	return conn, buffered, err
}

// Unwrap returns the server's ResponseWriter; see http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
