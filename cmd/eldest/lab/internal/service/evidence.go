package service

import (
	"context"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/curator/kv"
	"github.com/eldest-io/eldest/keys"
)

// Change is one key that one etcd revision put or deleted. All else is somebody's report; this is
// what etcd did.
type Change = *clientv3.Event

// evidenceTime bounds the reading of the changes.
const evidenceTime = 30 * time.Second

// Changes reads all that ever happened in etcd, in the order in which it happened. It
// blocks until it has everything up to the present revision, or ctx ends.
func Changes(ctx context.Context, client *clientv3.Client) ([]Change, error) {
	ctx, cancel := context.WithTimeout(ctx, evidenceTime)
	defer cancel()
	// Linearizable: nothing that was acknowledged to anybody is later than this.
	now, err := client.Get(ctx, "present")
	if err != nil {
		return nil, fmt.Errorf("reading the evidence: %w", err)
	}
	if now.Header.Revision <= 1 {
		return nil, nil // nothing ever happened
	}
	var all []Change
	for resp := range client.Watch(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithRev(1)) {
		if err := resp.Err(); err != nil {
			return nil, fmt.Errorf("reading the evidence: %w", err)
		}
		all = append(all, resp.Events...)
		// A revision's changes come together, and each revision changes something.
		if n := len(all); n > 0 && all[n-1].Kv.ModRevision >= now.Header.Revision {
			return all, nil
		}
	}
	return nil, fmt.Errorf("reading the evidence: %w", context.Cause(ctx))
}

// evidence is all that is known of a run, in order.
type evidence struct {
	facts    []scenario.Fact // in the order of their times
	attempts []Attempt       // in the order of their ends

	// trail are the records in the order of their revisions.
	trail []kv.Entry
	// data are the changes of the service's keys, by revision.
	data map[int64][]datum
	// candidates are the changes of the election's keys, in order.
	candidates []Change
	// odd are findings that fit nowhere.
	odd []string
}

// datum is a change of a key of the service.
type datum struct {
	key, value string
	deleted    bool
}

func newEvidence(facts []scenario.Fact, attempts []Attempt, changes []Change) *evidence {
	x := &evidence{facts: scenario.InOrder(facts), attempts: scenario.InOrder(attempts), data: make(map[int64][]datum)}
	space := kv.SpaceOf(Election)
	mailboxes, _ := keys.MailboxRange(Election)
	for _, c := range changes {
		name, deleted := string(c.Kv.Key), c.Type == clientv3.EventTypeDelete
		switch key, isData := space.Key(name); {
		case isData:
			x.data[c.Kv.ModRevision] = append(x.data[c.Kv.ModRevision], datum{key, string(c.Kv.Value), deleted})
		case strings.HasPrefix(name, space.Trail()):
			// The trail is only ever added to.
			switch e, err := space.ParseEntry(c.Kv); {
			case deleted:
				x.odd = append(x.odd, "the record "+name+" was deleted")
			case c.Kv.Version > 1:
				x.odd = append(x.odd, "the record "+name+" was written over")
			case err != nil:
				x.odd = append(x.odd, err.Error())
			default:
				x.trail = append(x.trail, e)
			}
		case strings.HasPrefix(name, Election+"/"):
			x.candidates = append(x.candidates, c)
		case strings.HasPrefix(name, mailboxes), name == keys.Newest(Election):
			// A node can be asked to requeue or to drain, and says so; that is no data.
		default:
			x.odd = append(x.odd, "somebody wrote "+name)
		}
	}
	return x
}
