package view_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/view"
	"github.com/eldest-io/eldest/keys"
)

// store is the simple model: every key as etcd has it, without an order.
type store struct {
	revision int64
	keys     map[string]*mvccpb.KeyValue
}

// commit applies one transaction of up to four changes and returns its events, in any order.
func (s *store) commit(r *rand.Rand, names []string) []*clientv3.Event {
	s.revision += 1 + r.Int64N(3) // other clients write as well
	var events []*clientv3.Event
	for _, i := range r.Perm(len(names))[:1+r.IntN(4)] {
		name := names[i]
		old := s.keys[name]
		if r.IntN(3) == 0 {
			if old != nil {
				delete(s.keys, name)
				events = append(events, &clientv3.Event{Type: mvccpb.DELETE, Kv: &mvccpb.KeyValue{Key: []byte(name), ModRevision: s.revision}})
			}
			continue
		}
		kv := &mvccpb.KeyValue{Key: []byte(name), CreateRevision: s.revision, ModRevision: s.revision, Value: fmt.Append(nil, r.IntN(10))}
		if old != nil {
			kv.CreateRevision = old.CreateRevision
		}
		s.keys[name] = kv
		events = append(events, &clientv3.Event{Type: mvccpb.PUT, Kv: kv})
	}
	return events
}

// queue is what a view should show.
func (s *store) queue(election string) []*mvccpb.KeyValue {
	queue := []*mvccpb.KeyValue{}
	for name, kv := range s.keys {
		if _, err := keys.Parse(election, name); err == nil {
			queue = append(queue, kv)
		}
	}
	slices.SortFunc(queue, func(a, b *mvccpb.KeyValue) int {
		return cmp.Or(cmp.Compare(a.CreateRevision, b.CreateRevision), cmp.Compare(string(a.Key), string(b.Key)))
	})
	return queue
}

func (s *store) snapshot(r *rand.Rand) []*mvccpb.KeyValue {
	var kvs []*mvccpb.KeyValue
	for _, kv := range s.keys {
		kvs = append(kvs, kv)
	}
	r.Shuffle(len(kvs), func(i, j int) { kvs[i], kvs[j] = kvs[j], kvs[i] })
	return kvs
}

// The view is the queue after any changes, with the events of one transaction in any order, and
// with snapshots at any time in place of changes that were missed.
func TestViewIsTheQueue(t *testing.T) {
	t.Parallel()
	const election = "e"
	names := []string{"e/", "e/zzz", "e/00a"} // foreign
	for lease := range int64(6) {
		names = append(names, keys.Candidate(election, lease+1))
	}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		s := &store{keys: make(map[string]*mvccpb.KeyValue)}
		foreign := 0
		v := view.View{Election: election, Foreign: func(string) { foreign++ }}
		v.Reset(0, nil)
		require.Nil(t, v.Leader())
		for range 60 {
			events := s.commit(r, names)
			switch r.IntN(8) {
			case 0: // an interruption: some changes are missed
				s.commit(r, names)
				v.Reset(s.revision, s.snapshot(r))
			default:
				if len(events) == 0 {
					continue
				}
				v.Change(s.revision, events)
			}
			want := s.queue(election)
			require.Equal(t, want, append([]*mvccpb.KeyValue{}, v.Queue...), "seed %d", seed)
			require.Equal(t, s.revision, v.Revision)
			if len(want) == 0 {
				require.Nil(t, v.Leader())
			} else {
				require.Same(t, want[0], v.Leader())
			}
		}
		require.Positive(t, foreign)
	}
}

// A value that was returned does not change with the view.
func TestLeadersAreIndependentOfTheView(t *testing.T) {
	v := view.View{Election: "e"}
	put := func(lease, create, mod int64, value string) *clientv3.Event {
		return &clientv3.Event{Type: mvccpb.PUT, Kv: &mvccpb.KeyValue{
			Key: []byte(keys.Candidate("e", lease)), CreateRevision: create, ModRevision: mod, Value: []byte(value),
		}}
	}
	v.Change(5, []*clientv3.Event{put(1, 5, 5, "old")})
	before := v.Leader()
	v.Change(6, []*clientv3.Event{put(1, 5, 6, "new")})
	v.Change(7, []*clientv3.Event{{Type: mvccpb.DELETE, Kv: &mvccpb.KeyValue{Key: []byte("e/1"), ModRevision: 7}}, put(2, 7, 7, "other")})
	require.Equal(t, "old", string(before.Value))
	require.EqualValues(t, 5, before.CreateRevision)
	require.Equal(t, "other", string(v.Leader().Value))
}
