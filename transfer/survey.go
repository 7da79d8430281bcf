package transfer

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/absent"
	"github.com/eldest-io/eldest/internal/requestkey"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/internal/retryrpc"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/txn"
)

// Member is a candidate, and whether it accepts requests.
type Member struct {
	eldest.Candidate
	// TakesPart means that it takes part in transfers: it has a request key for its current token. For a
	// moment after each registration it has none yet.
	TakesPart bool
	// Pending means that it has an unanswered request.
	Pending bool
	// mod is the mod revision of the request key, whatever its value; 0 if there is none.
	mod int64
}

// Queue is an election as of one revision.
type Queue struct {
	Election string
	Revision int64
	// Members are the candidates, oldest first: the first one leads.
	Members []Member
	// Foreign are keys in the election's range that are no candidates. Candidates of etcd's own
	// package wait behind them.
	Foreign []string
	// Unread are request keys with an unreadable value: of another version, or of another program.
	Unread []string
}

// Survey reads the candidates of an election and which of them accept requests, at one revision, in
// one request. It blocks until any member of etcd answers or ctx ends (its cause). Errors:
// eldest.ErrInvalid; etcd's error if it refuses, such as a missing permission for the request keys.
func Survey(ctx context.Context, kv clientv3.KV, name string) (Queue, error) {
	err := check(ctx, kv, name)
	var q Queue
	if err == nil {
		q, err = survey(ctx, kv, name)
	}
	if err != nil {
		return Queue{}, &eldest.OpError{Op: "survey", Election: name, Err: err}
	}
	return q, nil
}

func check(ctx context.Context, kv clientv3.KV, name string) error {
	switch {
	case ctx == nil:
		return fmt.Errorf("%w: the context is nil", eldest.ErrInvalid)
	case absent.Client(kv):
		return fmt.Errorf("%w: the client is nil", eldest.ErrInvalid)
	}
	return keys.Check(name)
}

func survey(ctx context.Context, kv clientv3.KV, name string) (Queue, error) {
	var line txn.Snapshot
	var boxes map[int64]requestkey.Key
	err := policy(kv).Until(ctx, func(once context.Context) (err error) {
		line, boxes, err = requestkey.Survey(once, kv, name)
		return err
	})
	if err != nil {
		return Queue{}, err
	}
	return queueOf(name, line, boxes), nil
}

func policy(kv clientv3.KV) retryrpc.Policy {
	return retryrpc.Policy{Client: kv, Timeout: election.DefaultTimeout, Backoff: retry.Default()}
}

// queueOf adds the messages of the request keys to a snapshot.
func queueOf(name string, line txn.Snapshot, boxes map[int64]requestkey.Key) Queue {
	q := Queue{Election: name, Revision: line.Revision, Foreign: line.Foreign}
	for _, c := range line.Queue {
		m := Member{Candidate: c}
		if box, ok := boxes[c.Lease]; ok {
			m.mod = box.Mod
			l, err := decode(box.Value)
			switch {
			case err != nil:
				q.Unread = append(q.Unread, keys.Request(name, c.Lease))
			case l.Token == c.Token && box.Lease == c.Lease:
				m.TakesPart, m.Pending = true, l.Request != nil
			}
		}
		q.Members = append(q.Members, m)
	}
	return q
}
