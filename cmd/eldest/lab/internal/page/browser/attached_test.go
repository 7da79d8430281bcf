package browser_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
)

// candidates is the queue of an election of an existing cluster: names of candidates, each with a key.
func (s *scripted) candidates(election string, who ...string) (places []place) {
	q := feed.QueueState{Election: election, Revision: 20}
	for i, name := range who {
		key := fmt.Sprintf("%s/%x", election, name)
		places = append(places, place{Key: key, Value: name, Create: int64(10 + i)})
		q.Places = append(q.Places, feed.PlaceState{Key: key, Who: name, Value: name, Create: int64(10 + i), Mod: int64(10 + i), Lease: "1f", LeftMS: -1})
	}
	s.log.Add(feed.Event{Type: feed.Queue, Queue: &q})
	return places
}

// attached is an existing cluster.
func attached(write bool) *scripted {
	return &scripted{info: feed.Info{Mode: "cluster", Write: write, Endpoints: []string{"etcd1:2379"}}, log: feed.NewLog()}
}

// All elections are shown, and followed; names and values are text, never markup. Nothing can be done to
// them.
func testExistingCluster(t *testing.T, browser *chromium) {
	s := attached(false)
	both := s.candidates("jobs", "anna", "bert")
	s.candidates("mail", "carl")
	s.candidates(hostile, hostile)
	u := use(visit(t, browser, serve(t, s)))
	for _, election := range []string{"jobs", "mail", hostile} {
		u.shows(election)
	}
	u.chooseElection("jobs")
	u.queueShows(both, []string{"anna", "bert"})
	require.Empty(t, u.controls(), "it is only shown")

	// The leader changes, and a candidate arrives.
	u.queueShows(s.candidates("jobs", "bert", "dora"), []string{"bert", "dora"})
	u.until("its tenures are listed", `document.querySelectorAll("#tenures tbody tr").length === 2`)
	u.chooseElection("mail")
	u.shows("carl")
	u.chooseElection(hostile)
	requireText(u.tab, hostile)
	require.Empty(t, s.did())
}

// With --write, an eviction asks for a confirmation, and is about exactly this candidate.
func testEviction(t *testing.T, browser *chromium) {
	s := attached(true)
	both := s.candidates("jobs", "anna", "bert")
	u := use(visit(t, browser, serve(t, s)))
	u.evict(both[0].Key, false)
	time.Sleep(soon) // a refused confirmation does nothing that could be awaited
	require.Empty(t, s.did())
	u.evict(both[0].Key, true)
	want := []feed.Action{{Do: feed.Evict, Election: "jobs", Key: both[0].Key, Token: both[0].Create}}
	u.until("it is done", `document.querySelector("#said").innerText !== ""`)
	require.Equal(t, want, s.did())
}
