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
	// announced is when its queue was added to the log.
	announced time.Time
}

// place is one key.
type place struct {
	// key is as it is shown: see shownKey.
	key         string
	create, mod int64
	lease       int64
	// who names the candidate for people, value is its value; both are printable, and shortened.
	who, value string
	// foreign means that it is no candidate's key.
	foreign bool
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

// shownKey returns a key as it is shown: that of a candidate whole, so that actions can name it. Of a
// foreign one that is long, or no text, it is the beginning, and a hash that tells it from others.
func shownKey(key string, foreign bool) string {
	if !foreign || len(key) <= maxForeign && utf8.ValidString(key) {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return fmt.Sprintf("%s... (%d bytes, %x)", strings.ToValidUTF8(key[:min(len(key), maxForeign)], "?"), len(key), sum[:6])
}

// isForeign reports whether a key in an election's range is no candidate's.
func isForeign(election, key string) bool {
	directory, name := split(election)
	_, err := keys.Parse(name, strings.TrimPrefix(key, directory))
	return err != nil || !utf8.ValidString(key)
}

func newPlace(election string, kv *mvccpb.KeyValue) place {
	foreign := isForeign(election, string(kv.Key))
	p := place{
		key: shownKey(string(kv.Key), foreign), create: kv.CreateRevision, mod: kv.ModRevision, lease: kv.Lease,
		value: operate.ShownValue(kv.Value), foreign: foreign,
	}
	p.who = p.value
	if node, ok := operate.NodeOf(kv.Value); ok && node.NodeID != "" {
		p.who = cli.Printable(node.NodeID)
	}
	return p
}

// older orders a queue.
func older(a, b place) int {
	return cmp.Or(cmp.Compare(a.create, b.create), strings.Compare(a.key, b.key))
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
	shown := shownKey(key, isForeign(e.name, key))
	e.places = slices.DeleteFunc(e.places, func(p place) bool { return p.key == shown })
}

// listed returns the election's line in the list of elections.
func (e *election) listed() feed.ElectionState {
	line := feed.ElectionState{Name: e.name}
	for _, p := range e.places {
		if p.foreign {
			continue
		}
		if line.Candidates == 0 {
			line.Leader, line.Token = p.who, p.create
		}
		line.Candidates++
	}
	return line
}

// shown returns the places that are shown.
func (e *election) shown() []place { return e.places[:min(len(e.places), maxPlaces)] }

// state returns the queue for the page.
func (e *election) state(leases leases) *feed.QueueState {
	shown := e.shown()
	q := &feed.QueueState{Election: e.name, Revision: e.revision, Places: make([]feed.PlaceState, len(shown)), More: len(e.places) - len(shown)}
	for i, p := range shown {
		left, granted := leases.left(p.lease)
		q.Places[i] = feed.PlaceState{
			Key: p.key, Who: p.who, Value: p.value, Create: p.create, Mod: p.mod,
			Lease: strconv.FormatInt(p.lease, 16), LeftMS: left, GrantedMS: granted, Foreign: p.foreign,
		}
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
