package clusterview

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

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
}

// place is one key.
type place struct {
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

func newPlace(election string, kv *mvccpb.KeyValue) place {
	directory, name := split(election)
	_, err := keys.Parse(name, strings.TrimPrefix(string(kv.Key), directory))
	p := place{
		key: string(kv.Key), create: kv.CreateRevision, mod: kv.ModRevision, lease: kv.Lease,
		value: operate.ShownValue(kv.Value), foreign: err != nil,
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

// put adds a key, or a new value of it.
func (e *election) put(kv *mvccpb.KeyValue) {
	p := newPlace(e.name, kv)
	at, present := slices.BinarySearchFunc(e.places, p, older)
	if present {
		e.places[at] = p
		return
	}
	e.places = slices.Insert(e.places, at, p)
}

// remove deletes a key; the event has only its name.
func (e *election) remove(key string) {
	e.places = slices.DeleteFunc(e.places, func(p place) bool { return p.key == key })
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

// Keys of eldest that are attached to a candidate's lease as well, and end in it: requests, and
// heartbeats.
var requests, heartbeats = func() (requests, heartbeats string) {
	requests, _ = keys.RequestRange("x")
	heartbeats, _ = keys.Heartbeats()
	return strings.TrimSuffix(requests, "x/"), strings.TrimSuffix(heartbeats, "/")
}()

// electionOf returns the election of a candidate's key; ok is false for any other key.
func electionOf(kv *mvccpb.KeyValue) (shown string, ok bool) {
	shown, lease, ok := named(string(kv.Key))
	return shown, ok && lease == kv.Lease
}

// named returns the election and lease that a key is named for. The key is a candidate's if it is
// attached to that lease; ok is false for a key that cannot be one.
func named(key string) (shown string, lease int64, ok bool) {
	at := strings.LastIndexByte(key, '/')
	if at <= 0 {
		return "", 0, false
	}
	lease, err := strconv.ParseInt(key[at+1:], 16, 64)
	if err != nil || lease == 0 || key[at+1:] != strconv.FormatInt(lease, 16) {
		return "", 0, false
	}
	shown = key[:at]
	directory, name := split(shown)
	ok = keys.Check(name) == nil && !strings.HasSuffix(directory, requests) && !strings.HasSuffix(shown, heartbeats)
	return shown, lease, ok
}
