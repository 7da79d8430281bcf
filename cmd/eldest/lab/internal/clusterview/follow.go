package clusterview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/internal/retry"
	"github.com/eldest-io/eldest/keys"
)

const (
	// firstPause and lastPause are the pauses between two attempts to follow the cluster; each is
	// twice as long as the one before. steady is how long an attempt lasts that has succeeded.
	firstPause, lastPause = 100 * time.Millisecond, 10 * time.Second
	steady                = 5 * time.Second
)

// follow reads the elections and watches them, again after each failure, until ctx ends.
func (v *View) follow(ctx context.Context) {
	for pause := time.Duration(0); retry.Sleep(ctx, pause) == nil; pause = min(max(2*pause, firstPause), lastPause) {
		began := time.Now()
		err := v.once(ctx)
		switch {
		case errors.Is(err, rpctypes.ErrCompacted): // the keys are read again, and nothing is wrong
		case connect.Code(err) == codes.PermissionDenied && v.cfg.Election == "" && ctx.Err() == nil:
			v.report(v.mayNot())
		default:
			v.failed(ctx, err)
		}
		if time.Since(began) > steady {
			pause = 0
		}
	}
}

// mayNot is the problem that the user may not read all keys.
func (v *View) mayNot() string {
	where := "all keys"
	if v.cfg.Conn.Namespace != "" {
		where = "all keys in " + cli.Printable(v.cfg.Conn.Namespace)
	}
	return fmt.Sprintf("user %q may not read %s; start \"eldest lab ELECTION --endpoints ...\" to see one election, or use --namespace with a directory that the user may read",
		v.cfg.Conn.User, where)
}

// once reads the elections, and watches them until something fails or ctx ends.
func (v *View) once(ctx context.Context) error {
	found, revision, err := v.read(ctx)
	if err != nil {
		return err
	}
	v.reset(found)
	begin, end := wholeBegin, wholeEnd
	if v.cfg.Election != "" {
		begin, end = keys.Range(v.cfg.Election)
	}
	// Without a leader a member receives no changes: then another one is asked.
	watching, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	for response := range v.cfg.Client.Watch(watching, begin, clientv3.WithRange(end), clientv3.WithRev(revision+1)) {
		if err := response.Err(); err != nil {
			return err
		}
		// One revision after the other, so that every leader is shown.
		for events := response.Events; len(events) > 0; {
			revision, n := events[0].Kv.ModRevision, 1
			for n < len(events) && events[n].Kv.ModRevision == revision {
				n++
			}
			if err := v.discover(ctx, events[:n]); err != nil {
				return err
			}
			v.apply(revision, events[:n])
			events = events[n:]
		}
	}
	return errors.New("the watch has ended")
}

// reset replaces all elections.
func (v *View) reset(found []*election) {
	v.mu.Lock()
	defer v.mu.Unlock()
	before := v.elections
	v.elections = map[string]*election{}
	for _, e := range found {
		v.add(e)
		delete(before, e.name)
	}
	for name := range before {
		v.log.ForgetQueue(name)
	}
	v.announce()
}

// add adds an election that was read. The caller holds mu.
func (v *View) add(e *election) {
	v.elections[e.name] = e
	v.showQueue(e)
}

// showQueue adds the queue of an election to the log. The caller holds mu.
func (v *View) showQueue(e *election) {
	e.announced, e.late = time.Now(), false
	v.log.Add(feed.Event{Type: feed.Queue, Queue: e.state(v.left)})
}

const (
	// often is the time between two events of a queue at least in which neither its order nor its
	// members have changed.
	often = 100 * time.Millisecond
	// announcing is how many times as long is between two lists of elections at least.
	announcing = 5
)

// catchUp shows the queues whose newest state came too soon after another one, and the list of
// elections when it has changed, until ctx ends.
func (v *View) catchUp(ctx context.Context) {
	for round := 1; retry.Sleep(ctx, often) == nil; round++ {
		v.mu.Lock()
		for _, e := range v.elections {
			if e.late {
				v.showQueue(e)
			}
		}
		if v.listed != nil && round%announcing == 0 {
			v.announce()
		}
		v.mu.Unlock()
	}
}

// discover reads the elections of which a first candidate has registered: there may be other keys in
// their ranges.
func (v *View) discover(ctx context.Context, events []*clientv3.Event) error {
	for _, event := range events {
		name, ok := electionOf(event.Kv) // a deletion has no lease
		if !ok || v.cfg.Election != "" || !v.room(name) {
			continue
		}
		e, err := v.readElection(ctx, name, event.Kv.ModRevision)
		if err != nil {
			return err
		}
		v.mu.Lock()
		v.add(e)
		v.mu.Unlock()
	}
	return nil
}

// room reports whether an election is new and can be shown. If too many are shown, one without a key is
// dropped for it.
func (v *View) room(name string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.elections[name] != nil || len(v.elections) < maxElections {
		return v.elections[name] == nil
	}
	for other, e := range v.elections {
		if len(e.places) == 0 {
			delete(v.elections, other)
			v.log.ForgetQueue(other)
			return true
		}
	}
	v.report(tooMany(len(v.elections) + 1))
	return false
}

// apply applies the events of one revision. A key is in the range of more than one election if their
// names nest.
func (v *View) apply(revision int64, events []*clientv3.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	changed := map[*election]bool{} // whether more than the values of keys has changed
	for _, event := range events {
		key := string(event.Kv.Key)
		for at := range min(len(key), maxDirectory+keys.MaxName+1) { // no name is longer
			if key[at] != '/' {
				continue
			}
			e := v.elections[key[:at]]
			if e == nil || e.revision >= revision { // it was read after this
				continue
			}
			moved := true
			if event.Type == clientv3.EventTypeDelete {
				e.remove(key)
			} else {
				moved = e.put(event.Kv)
			}
			changed[e] = changed[e] || moved
		}
	}
	for e, moved := range changed {
		e.revision, e.late = revision, true
		if moved || time.Since(e.announced) >= often {
			v.showQueue(e)
		}
	}
}

// announce shows the list of elections if it has changed, and the first one also if it is empty. The
// caller holds mu.
func (v *View) announce() {
	list := []feed.ElectionState{}
	for _, e := range v.sorted() {
		list = append(list, e.listed())
	}
	if v.listed == nil || !slices.Equal(list, v.listed) {
		v.listed = list
		v.log.Add(feed.Event{Type: feed.Elections, Elections: list})
	}
}
