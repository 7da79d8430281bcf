package clusterview

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/operate"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/keys"
)

// election is the queue of one election.
//
// Invariant: places has all keys of the election's range as of revision, sorted by create revision,
// and by key if several were put in one transaction.
type election struct {
	name     string // as it is shown, with its directory
	revision int64
	places   []place
	// announced is when its queue was added to the log; late means that values have changed since.
	announced time.Time
	late      bool
}

// place is one key, as it is shown, except for the time that its lease has left.
type place struct {
	feed.PlaceState
	lease int64
}

// maxPlaces is how many places of a queue are shown.
const maxPlaces = 100

const (
	// maxDirectory is the longest directory of an election that is shown, in bytes. So a candidate's key
	// has a bounded length as well.
	maxDirectory = keys.MaxName
	// maxForeign is the longest foreign key that is shown whole.
	maxForeign = 256
)

// shownKey returns a key in an election's range as it is shown, and whether it is foreign. That of a
// candidate is whole, so that actions can name it. Of a foreign one that is long, or no text, it is
// the beginning, and a hash that tells it from others.
func shownKey(election, key string) (shown string, foreign bool) {
	_, err := keys.Parse(election, key)
	text := utf8.ValidString(key)
	switch {
	case text && err == nil:
		return key, false
	case text && len(key) <= maxForeign:
		return key, true
	}
	sum := sha256.Sum256([]byte(key))
	return fmt.Sprintf("%s... (%d bytes, %x)", strings.ToValidUTF8(key[:min(len(key), maxForeign)], "?"), len(key), sum[:6]), true
}

func newPlace(election string, kv *mvccpb.KeyValue) place {
	p := place{lease: kv.Lease, PlaceState: feed.PlaceState{
		Value: operate.ShownValue(kv.Value), Create: kv.CreateRevision, Mod: kv.ModRevision, Lease: strconv.FormatInt(kv.Lease, 16),
	}}
	p.Key, p.Foreign = shownKey(election, string(kv.Key))
	p.Who = p.Value
	if node, ok := operate.NodeOf(kv.Value); ok {
		p.Who = cli.Printable(node.NodeID)
	}
	return p
}

// older orders a queue.
func older(a, b place) int {
	return cmp.Or(cmp.Compare(a.Create, b.Create), strings.Compare(a.Key, b.Key))
}

// put adds a key, or a new value of it, and reports whether it is new.
func (e *election) put(kv *mvccpb.KeyValue) (added bool) {
	p := newPlace(e.name, kv)
	at, present := slices.BinarySearchFunc(e.places, p, older)
	if present {
		e.places[at] = p
		return false
	}
	e.places = slices.Insert(e.places, at, p)
	return true
}

// remove deletes a key; the event has only its name.
func (e *election) remove(key string) {
	shown, _ := shownKey(e.name, key)
	e.places = slices.DeleteFunc(e.places, func(p place) bool { return p.Key == shown })
}

// listed returns the election's line in the list of elections.
func (e *election) listed() feed.ElectionState {
	line := feed.ElectionState{Name: e.name}
	for _, p := range e.places {
		if p.Foreign {
			continue
		}
		if line.Candidates == 0 {
			line.Leader, line.Token = p.Who, p.Create
		}
		line.Candidates++
	}
	return line
}

// shown returns the places that are shown.
func (e *election) shown() []place { return e.places[:min(len(e.places), maxPlaces)] }

// state returns the queue for the page.
func (e *election) state(left leases) *feed.QueueState {
	q := &feed.QueueState{Election: e.name, Revision: e.revision, Places: []feed.PlaceState{}, More: len(e.places) - len(e.shown())}
	for _, p := range e.shown() {
		p.LeftMS = unknown
		if l, known := left[p.lease]; known {
			p.LeftMS = feed.Milliseconds(max(0, l.TTL-time.Since(l.Answered)))
			p.GrantedMS = feed.Milliseconds(l.Granted)
		}
		q.Places = append(q.Places, p.PlaceState)
	}
	return q
}

// split divides the name of an election, as it is shown, into its directory, which ends in '/' or is
// empty, and the name that package keys accepts.
func split(shown string) (directory, name string) {
	at := strings.LastIndexByte(shown, '/') + 1
	return shown[:at], shown[at:]
}

// electionOf returns the election, with its directory, of a candidate's key: one that ends in the
// lease to which it is attached. ok is false for any other key, also for requests and heartbeats, which
// are attached to a candidate's lease as well, and end in it. Their namespace may end in any character.
func electionOf(kv *mvccpb.KeyValue) (shown string, ok bool) {
	key := string(kv.Key)
	shown, ok = strings.CutSuffix(key, "/"+strconv.FormatInt(kv.Lease, 16))
	directory, name := split(shown)
	if !ok || kv.Lease <= 0 || keys.Check(name) != nil || len(directory) > maxDirectory || !utf8.ValidString(shown) {
		return "", false
	}
	return shown, !strings.HasSuffix(key, keys.Request(name, kv.Lease)) && !strings.HasSuffix(key, keys.Heartbeat(kv.Lease))
}
