package transcript

import (
	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/wiretap"
)

// calls finds the request to which a message belongs. The zero value is ready to use.
type calls struct{ open map[int]*call }

// call is a call that goes on.
type call struct {
	// waiting has the requests without an answer, oldest first: etcd answers them in their order.
	waiting []*wiretap.Message
	// watches has the requests that created the watches, by etcd's numbers.
	watches map[int64]*wiretap.Message
}

// request returns the request that a message answers or ends, and for a message about a watch the one
// that created it. A request is returned itself. It returns nil if there is none, or none was
// recorded. It must be called with all messages, in order.
func (c *calls) request(m *wiretap.Message) *wiretap.Message {
	if m.Kind == wiretap.Note {
		return nil
	}
	if c.open == nil {
		c.open = map[int]*call{}
	}
	in := c.open[m.Call]
	if in == nil {
		in = &call{watches: map[int64]*wiretap.Message{}}
		c.open[m.Call] = in
	}
	if m.Kind == wiretap.End || m.Kind == wiretap.Answer && !m.Stream {
		delete(c.open, m.Call)
	}
	switch r := m.Body.(type) {
	case *etcdserverpb.WatchRequest:
		if r.GetCreateRequest() == nil {
			return in.watches[r.GetCancelRequest().GetWatchId()]
		}
	case *etcdserverpb.WatchResponse:
		if r.Created {
			in.watches[r.WatchId] = in.answered()
		}
		return in.watches[r.WatchId]
	}
	if m.Kind == wiretap.Request {
		in.waiting = append(in.waiting, m)
		return m
	}
	return in.answered()
}

// answered takes the oldest request that waits for an answer.
func (c *call) answered() *wiretap.Message {
	if len(c.waiting) == 0 {
		return nil
	}
	request := c.waiting[0]
	c.waiting = c.waiting[1:]
	return request
}

// isAnswer reports whether a message answers or ends a request: not what comes in a watch's call
// after the watch was created.
func isAnswer(m *wiretap.Message) bool {
	watch, is := m.Body.(*etcdserverpb.WatchResponse)
	return (m.Kind == wiretap.Answer || m.Kind == wiretap.End) && (!is || watch.Created)
}
