package page

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
)

const (
	// gathering is how long events are collected into one message.
	gathering = 50 * time.Millisecond
	// mostEvents is the maximum number of new events in a message.
	mostEvents = 2000
	// mostBytes is about how many bytes of JSON a message has at most.
	mostBytes = 1 << 20
	// keepAlive is the time between two messages at most.
	keepAlive = 10 * time.Second
)

// stream serves the events until the client or the server ends.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	seq, err := begins(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	// send writes a message. A client that does not read is disconnected: it connects again, and
	// gets what it has missed.
	send := func(message []byte) error {
		if err := control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return err
		}
		if _, err := w.Write(message); err != nil {
			return err
		}
		return control.Flush()
	}
	if send([]byte(": eldest lab\n\n")) != nil {
		return
	}
	for {
		events, err := gather(r.Context(), s.source.Log(), seq)
		switch {
		case r.Context().Err() != nil:
			return
		case err != nil && send([]byte(": nothing new\n\n")) != nil:
			return
		}
		for len(events) > 0 {
			message, n, err := messageOf(events)
			if err != nil || send(message) != nil {
				return
			}
			seq, events = events[n-1].Seq, events[n:]
		}
	}
}

// begins returns the number of the event after which a stream begins. EventSource sends the header
// when it connects again, and keeps the query of the first time.
func begins(r *http.Request) (int64, error) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = r.URL.Query().Get("after")
	}
	if text == "" {
		return 0, nil
	}
	seq, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seq < 0 {
		return 0, fmt.Errorf("%q is not the number of an event", text)
	}
	return seq, nil
}

// gather waits for events after seq, for keepAlive at most, and collects those that follow at once.
// On success there is at least one.
func gather(ctx context.Context, log *feed.Log, seq int64) ([]feed.Event, error) {
	waiting, cancel := context.WithTimeout(ctx, keepAlive)
	defer cancel()
	events, err := log.After(waiting, seq, mostEvents)
	if err != nil || len(events) >= mostEvents {
		return events, err
	}
	select {
	case <-time.After(gathering):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return log.After(ctx, seq, mostEvents) // returns at once
}

// messageOf renders a message of the first n events: all, or as many as mostBytes permits, but at
// least one. JSON has no line ends within strings, so that it is one line.
func messageOf(events []feed.Event) (message []byte, n int, err error) {
	var data bytes.Buffer
	for ; n < len(events); n++ {
		one, err := json.Marshal(events[n])
		if err != nil {
			return nil, 0, err
		}
		if n > 0 && data.Len()+len(one) > mostBytes {
			break
		}
		if n > 0 {
			data.WriteByte(',')
		}
		data.Write(one)
	}
	return fmt.Appendf(nil, "id: %d\ndata: [%s]\n\n", events[n-1].Seq, data.Bytes()), n, nil
}
