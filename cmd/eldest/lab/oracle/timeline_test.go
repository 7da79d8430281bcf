package oracle

import (
	"cmp"
	"slices"
	"time"
)

// timeline is a history written by hand, of events at instants of choice, in
// milliseconds, in whatever order they are written.
func timeline(events ...[]Event) *History {
	h := &History{About: About{Prefix: "e/", Data: "data", TTL: ttl * tick}}
	for _, e := range events {
		h.Events = append(h.Events, e...)
	}
	slices.SortStableFunc(h.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	for i := range h.Events {
		h.Events[i].Seq = i + 1
	}
	return h
}

// ttl of timelines, in milliseconds.
const ttl = 2000

func ms(n int) time.Duration { return time.Duration(n) * tick }

// says is one event.
func says(at int, who string, kind Kind, token int64) []Event {
	return []Event{{At: ms(at), Who: who, Kind: kind, Token: token}}
}

// won is a campaign, from its beginning to the telling of the win.
func won(joined, at int, who string, token int64) []Event {
	return []Event{
		{At: ms(joined), Who: who, Kind: Joined, Lease: token},
		{At: ms(at), Who: who, Kind: Won, Token: token, Key: key(token)},
	}
}

// wrote is a write, from when it was sent to its outcome; of an outcome that is
// empty nobody was told.
func wrote(sent, answered int, who string, token int64, name string, outcome Kind) []Event {
	out := []Event{{At: ms(sent), Who: who, Kind: Sent, Token: token, Write: name}}
	if outcome != "" {
		out = append(out, Event{At: ms(answered), Who: who, Kind: outcome, Token: token, Write: name})
	}
	return out
}

// read is a read of a name.
func read(asked, answered int, name string) []Event {
	return []Event{{At: ms(asked), Until: ms(answered), Who: "r", Kind: Read, Write: name}}
}

// asked is a sample.
func asks(at, until int, who string, kind Kind, token int64) []Event {
	return []Event{{At: ms(at), Until: ms(until), Who: who, Kind: kind, Token: token}}
}

// paused is a stop.
func paused(from, till int, who string) []Event {
	return append(says(from, who, Stopped, 0), says(till, who, Continued, 0)...)
}
