package clusterview

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

func kv(key string, lease, create int64, value string) *mvccpb.KeyValue {
	return &mvccpb.KeyValue{Key: []byte(key), Lease: lease, CreateRevision: create, ModRevision: create, Value: []byte(value)}
}

// A candidate's key ends in its own lease.
func TestElectionOf(t *testing.T) {
	for _, c := range []struct {
		key   string
		lease int64
		want  string // "": none
	}{
		{"svc/2a", 0x2a, "svc"},
		{"svc/7fffffffffffffff", math.MaxInt64, "svc"},
		{"prod/a/svc/2a", 0x2a, "prod/a/svc"},
		{"/svc/2a", 0x2a, "/svc"},
		{"prod/eldest/request/2a", 0x2a, "prod/eldest/request"},

		{strings.Repeat("n", 1024) + "/2a", 0x2a, strings.Repeat("n", 1024)},
		{strings.Repeat("d", 1023) + "/svc/2a", 0x2a, strings.Repeat("d", 1023) + "/svc"},

		{strings.Repeat("n", 1025) + "/2a", 0x2a, ""},
		{strings.Repeat("d", 1024) + "/svc/2a", 0x2a, ""},
		{"a\xff/2a", 0x2a, ""},
		{"\xff/svc/2a", 0x2a, ""},
		{"svc/2a", 0, ""},    // put by hand
		{"svc/2a", 0x2b, ""}, // attached to another lease
		{"svc/2A", 0x2a, ""},
		{"svc/02a", 0x2a, ""},
		{"svc/2a/x", 0x2a, ""},
		{"2a", 0x2a, ""},
		{"/2a", 0x2a, ""},
		{"svc//2a", 0x2a, ""}, // the name is empty: eldest cannot take part
		{"", 0, ""},
		{"/eldest/request/svc/2a", 0x2a, ""},
		{"prod//eldest/request/svc/2a", 0x2a, ""},
		{"prod:/eldest/request/svc/2a", 0x2a, ""}, // a namespace need not end in '/'
		{"/eldest/heartbeat/2a", 0x2a, ""},
		{"prod//eldest/heartbeat/2a", 0x2a, ""},
		{"prod:/eldest/heartbeat/2a", 0x2a, ""},
		{"/eldest/newest/svc", 0x2a, ""},
	} {
		name, ok := electionOf(kv(c.key, c.lease, 1, ""))
		require.Equal(t, c.want != "", ok, c.key)
		if ok {
			require.Equal(t, c.want, name)
		}
	}
}

func TestQueue(t *testing.T) {
	e := &election{name: "prod/svc", revision: 9}
	e.put(kv("prod/svc/2b", 0x2b, 5, "second"))
	e.put(kv("prod/svc/2a", 0x2a, 3, "first"))
	e.put(kv("prod/svc/notes", 0, 1, "foreign"))
	e.put(kv("prod/svc/2c", 0x2c, 5, "same revision"))
	require.Equal(t, feed.ElectionState{Name: "prod/svc", Candidates: 3, Leader: "first", Token: 3}, e.listed())

	again := kv("prod/svc/2a", 0x2a, 3, "renamed")
	again.ModRevision = 8
	e.put(again)
	q := e.state(leases{0x2a: {TTL: 4 * time.Second, Granted: 10 * time.Second, Answered: time.Now().Add(-time.Second)}, 0x2b: {TTL: -time.Second, Answered: time.Now()}})
	require.Equal(t, "prod/svc", q.Election)
	require.EqualValues(t, 9, q.Revision)
	require.Zero(t, q.More)
	var keys []string
	for _, p := range q.Places {
		keys = append(keys, p.Key)
	}
	require.Equal(t, []string{"prod/svc/notes", "prod/svc/2a", "prod/svc/2b", "prod/svc/2c"}, keys)
	require.True(t, q.Places[0].Foreign)
	require.InDelta(t, 3000, q.Places[1].LeftMS, 500)
	left := q.Places[1].LeftMS
	require.Equal(t, feed.PlaceState{
		Key: "prod/svc/2a", Who: "renamed", Value: "renamed", Create: 3, Mod: 8, Lease: "2a", LeftMS: left, GrantedMS: 10000,
	}, q.Places[1])
	require.Zero(t, q.Places[2].LeftMS, "it has expired")
	require.EqualValues(t, unknown, q.Places[3].LeftMS)

	for _, key := range []string{"prod/svc/2a", "prod/svc/2b", "prod/svc/2c", "prod/svc/no-such"} {
		e.remove(key)
	}
	require.Equal(t, feed.ElectionState{Name: "prod/svc"}, e.listed(), "a foreign key does not lead")
}

// Values are text from outside.
func TestValues(t *testing.T) {
	node, err := identity.Protobuf{}.Encode(identity.Identity{NodeID: "n1", Address: "h:1", TTL: time.Second})
	require.NoError(t, err)
	p := newPlace("svc", kv("svc/2a", 0x2a, 1, string(node)))
	require.Equal(t, "n1", p.Who)
	require.Equal(t, "node n1 at h:1", p.Value)
	p = newPlace("svc", kv("svc/2a", 0x2a, 1, "\x1b[2J\xff"))
	require.Equal(t, `"\x1b[2J\xff"`, p.Who)
	require.Equal(t, p.Who, p.Value)
}

// A long queue, and many leases, cost no more than the limits say.
func TestLimits(t *testing.T) {
	v := &View{elections: map[string]*election{}, log: feed.NewLog(), reported: map[string]time.Time{}}
	long := &election{name: "long"}
	for i := range int64(maxPlaces + 7) {
		long.put(kv(fmt.Sprintf("long/%x", i+1), i+1, i+1, ""))
	}
	require.Equal(t, 7, long.state(nil).More)
	require.Len(t, long.state(nil).Places, maxPlaces)
	require.Equal(t, maxPlaces+7, long.listed().Candidates)
	v.elections["long"] = long
	require.Len(t, v.polled(), maxPlaces)
	for i := range maxElections - 1 {
		e := &election{name: fmt.Sprintf("e%04d", i)}
		e.put(kv(e.name+"/2a", 0x2a, 1, "")) // of one session
		v.elections[e.name] = e
	}
	require.Equal(t, []int64{0x2a}, v.polled(), "the first elections by name, and each lease once")

	require.False(t, v.room("long"), "it is known")
	require.False(t, v.room("one more"))
	e := &election{name: "one more"}
	v.elections["e0000"].remove("e0000/2a")
	require.True(t, v.room(e.name), "one without a candidate is dropped for it")
	require.Len(t, v.elections, maxElections-1)
}

// A long key, and one that is no text, is foreign: it is shown shortened, and can be told from others.
func TestForeignKeys(t *testing.T) {
	e := &election{name: "svc"}
	long := "svc/" + strings.Repeat("x", 1<<20)
	require.True(t, e.put(kv(long, 0, 1, "")))
	require.True(t, e.put(kv(long+"y", 0, 1, "")))
	require.True(t, e.put(kv("svc/\xff", 0, 1, "")))
	require.True(t, e.put(kv("svc/2a", 0x2a, 2, "")))
	require.False(t, e.put(kv(long, 0, 1, "again")))
	names := map[string]bool{}
	for _, p := range e.places {
		require.Less(t, len(p.Key), 2*maxForeign)
		require.True(t, utf8.ValidString(p.Key))
		require.Equal(t, p.Key != "svc/2a", p.Foreign)
		names[p.Key] = true
	}
	require.Len(t, names, 4)
	for _, key := range []string{long, "svc/\xff", long + "y"} {
		n := len(e.places)
		e.remove(key)
		require.Len(t, e.places, n-1)
	}
	require.Equal(t, "svc/2a", e.places[0].Key)
}

// New values are shown ten times a second at most; candidates that come and go, always.
func TestNewValuesAreShownLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &election{name: "svc"}
		v := &View{elections: map[string]*election{"svc": e}, log: feed.NewLog()}
		put := func(key string, lease, create, mod int64) {
			k := kv(key, lease, create, "")
			k.ModRevision = mod
			v.apply(mod, []*clientv3.Event{{Type: clientv3.EventTypePut, Kv: k}})
		}
		shown := func() (revisions []int64) {
			events, err := v.log.After(t.Context(), 0, 100)
			require.NoError(t, err)
			for _, e := range events {
				revisions = append(revisions, e.Queue.Revision)
			}
			return revisions
		}
		put("svc/2a", 0x2a, 1, 1)
		for mod := int64(2); mod < 10; mod++ {
			put("svc/2a", 0x2a, 1, mod)
		}
		put("svc/2b", 0x2b, 10, 10)
		put("svc/2b", 0x2b, 10, 11)
		require.Equal(t, []int64{1, 10}, shown())
		ctx, cancel := context.WithCancel(t.Context())
		go v.catchUp(ctx)
		time.Sleep(often + time.Millisecond)
		require.Equal(t, []int64{1, 10, 11}, shown())
		cancel()
		synctest.Wait()
		put("svc/2b", 0x2b, 10, 12)
		require.Equal(t, []int64{1, 10, 11}, shown())
		time.Sleep(often)
		put("svc/2b", 0x2b, 10, 13)
		require.Equal(t, []int64{1, 10, 11, 13}, shown())
	})
}

func TestEndpointsShowNoPassword(t *testing.T) {
	for endpoint, want := range map[string]string{
		"127.0.0.1:2379": "127.0.0.1:2379", "https://h:1": "https://h:1", "http://u:secret@h:1": "http://h:1", "unix:///x": "unix:///x",
	} {
		require.Equal(t, want, withoutUser(endpoint))
	}
}
