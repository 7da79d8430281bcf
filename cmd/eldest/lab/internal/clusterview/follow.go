package clusterview

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/keys"
)

const (
	// firstPause and lastPause are the pauses between two attempts to follow the cluster; each is
	// twice as long as the one before. steady is how long an attempt lasts that has succeeded.
	firstPause, lastPause = 100 * time.Millisecond, 10 * time.Second
	steady                = 5 * time.Second
)

// errWatchEnded is the error of a watch that ended without a reason.
var errWatchEnded = errors.New("the watch has ended")

// follow reads the elections and watches them, again after each failure, until ctx ends.
func (v *View) follow(ctx context.Context) {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, lastPause) {
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
			pause = firstPause
		}
		sleep(ctx, pause)
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
		if err := v.change(ctx, response.Events); err != nil {
			return err
		}
	}
	return errWatchEnded
}

// reset replaces all elections.
func (v *View) reset(found []*election) {
	v.mu.Lock()
	defer v.mu.Unlock()
	before := maps.Clone(v.elections)
	clear(v.elections)
	clear(v.late)
	for _, e := range found {
		v.elections[e.name] = e
		v.showQueue(e)
		delete(before, e.name)
	}
	for name := range before {
		v.log.ForgetQueue(name)
	}
	v.announceNow()
}

// showQueue adds the queue of an election to the log. The caller holds mu.
func (v *View) showQueue(e *election) {
	e.announced = time.Now()
	delete(v.late, e)
	v.log.Add(feed.Event{Type: feed.Queue, Queue: e.state(v.leases)})
}

// often is the time between two events of a queue at least in which neither its order nor its
// members have changed.
const often = 100 * time.Millisecond

// catchUp shows the queues whose newest state came too soon after another one, until ctx ends.
func (v *View) catchUp(ctx context.Context) {
	for ctx.Err() == nil {
		sleep(ctx, often)
		v.mu.Lock()
		for e := range v.late {
			v.showQueue(e)
		}
		v.mu.Unlock()
	}
}

// change applies the events of a watch, and shows the queues whose order or members a revision has
// changed, so that every leader is shown.
func (v *View) change(ctx context.Context, events []*clientv3.Event) error {
	for len(events) > 0 {
		revision := events[0].Kv.ModRevision
		n := slices.IndexFunc(events, func(e *clientv3.Event) bool { return e.Kv.ModRevision != revision })
		if n < 0 {
			n = len(events)
		}
		if err := v.discover(ctx, events[:n]); err != nil {
			return err
		}
		v.apply(revision, events[:n])
		events = events[n:]
	}
	return nil
}

// discover reads the elections of which a first candidate has registered: there may be other keys in
// their ranges.
func (v *View) discover(ctx context.Context, events []*clientv3.Event) error {
	for _, event := range events {
		if event.Type == clientv3.EventTypeDelete || v.cfg.Election != "" {
			continue
		}
		name, ok := electionOf(event.Kv)
		if !ok || !v.room(name) {
			continue
		}
		e, err := v.readElection(ctx, name, event.Kv.ModRevision)
		if err != nil {
			return err
		}
		v.mu.Lock()
		v.elections[name] = e
		v.showQueue(e)
		v.mu.Unlock()
	}
	return nil
}

// room reports whether an election is new and can be shown. If too many are shown, one without a
// candidate is dropped for it.
func (v *View) room(name string) bool {
	v.mu.Lock()
	_, known := v.elections[name]
	if known || len(v.elections) < maxElections {
		v.mu.Unlock()
		return !known
	}
	dropped := false
	for other, e := range v.elections {
		if len(e.places) == 0 {
			delete(v.elections, other)
			delete(v.late, e)
			v.log.ForgetQueue(other)
			dropped = true
			break
		}
	}
	n := len(v.elections) + 1
	v.mu.Unlock()
	if !dropped {
		v.report(tooMany(n))
	}
	return dropped
}

// apply applies the events of one revision.
func (v *View) apply(revision int64, events []*clientv3.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	changed := map[*election]bool{} // whether more than the values of keys has changed
	for _, event := range events {
		for _, e := range v.around(string(event.Kv.Key)) {
			if e.revision >= revision { // it was read after this
				continue
			}
			moved := true
			if event.Type == clientv3.EventTypeDelete {
				e.remove(string(event.Kv.Key))
			} else {
				moved = e.put(event.Kv)
			}
			changed[e] = changed[e] || moved
		}
	}
	for e, moved := range changed {
		e.revision = revision
		if moved || time.Since(e.announced) >= often {
			v.showQueue(e)
		} else {
			v.late[e] = true
		}
	}
}

// around returns the elections in whose range a key is: more than one, if their names nest. The caller
// holds mu.
func (v *View) around(key string) (all []*election) {
	for at := range min(len(key), maxDirectory+keys.MaxName+1) { // no name is longer
		if key[at] != '/' {
			continue
		}
		if e := v.elections[key[:at]]; e != nil {
			all = append(all, e)
		}
	}
	return all
}

// announcing is the time between two lists of elections at least.
const announcing = 500 * time.Millisecond

// announce shows the list of elections when it has changed, until ctx ends.
func (v *View) announce(ctx context.Context) {
	for ctx.Err() == nil {
		sleep(ctx, announcing)
		v.mu.Lock()
		if v.list != nil { // nil: they were not read yet
			v.announceNow()
		}
		v.mu.Unlock()
	}
}

// announceNow shows the list of elections if it has changed. The caller holds mu.
func (v *View) announceNow() {
	list := make([]feed.ElectionState, 0, len(v.elections))
	for _, e := range v.elections {
		list = append(list, e.listed())
	}
	slices.SortFunc(list, func(a, b feed.ElectionState) int { return strings.Compare(a.Name, b.Name) })
	if v.list == nil || !slices.Equal(list, v.list) { // also the first list is shown if it is empty
		v.list = list
		v.log.Add(feed.Event{Type: feed.Elections, Elections: list})
	}
}
