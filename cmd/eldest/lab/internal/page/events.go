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
		message := []byte(": nothing new\n\n")
		switch {
		case err == nil:
			seq = events[len(events)-1].Seq
			message, err = messageOf(seq, events)
			if err != nil {
				return
			}
		case r.Context().Err() != nil:
			return
		}
		if send(message) != nil {
			return
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

// messageOf renders a message. JSON has no line ends within strings, so that it is one line.
func messageOf(seq int64, events []feed.Event) ([]byte, error) {
	data, err := json.Marshal(events)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "id: %d\ndata: %s\n\n", seq, data)
	return b.Bytes(), nil
}
