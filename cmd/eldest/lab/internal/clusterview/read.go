package clusterview

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/keys"
)

const (
	// pageKeys is how many keys are read with one request, without values. etcd 3.7 answers such a
	// request from its index, in which there are no leases either.
	pageKeys = 2000
	// pageLeases is how many keys are compared with their leases by one request: etcd refuses more than
	// 128 comparisons by default.
	pageLeases = 100
	// maxElections is how many elections are shown.
	maxElections = 1000
)

// wholeBegin and wholeEnd are the range of all keys; of a client with a namespace, of those in it.
const wholeBegin, wholeEnd = "\x00", "\x00"

// get sends one read.
func (v *View) get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	once, cancel := context.WithTimeout(ctx, v.cfg.Conn.CommandTimeout)
	defer cancel()
	return v.cfg.Client.Get(once, key, options...)
}

// read returns all elections as of one revision.
func (v *View) read(ctx context.Context) (found []*election, revision int64, err error) {
	names := []string{v.cfg.Election}
	if v.cfg.Election == "" {
		if names, revision, err = v.names(ctx); err != nil {
			return nil, 0, err
		}
	}
	for _, name := range names {
		e, err := v.readElection(ctx, name, revision)
		if err != nil {
			return nil, 0, err
		}
		found, revision = append(found, e), e.revision
	}
	return found, revision, nil
}

// names returns the names of all elections, and the revision as of which it has read them. Those that
// were shown before are among them, also without a candidate.
func (v *View) names(ctx context.Context) (names []string, revision int64, err error) {
	found := map[string]bool{}
	v.mu.Lock()
	for name := range v.elections {
		found[name] = true
	}
	v.mu.Unlock()
	for begin, more := wholeBegin, true; more; {
		page, err := v.get(ctx, begin, clientv3.WithRange(wholeEnd), clientv3.WithKeysOnly(), clientv3.WithLimit(pageKeys), clientv3.WithRev(revision))
		if err != nil {
			return nil, 0, err
		}
		revision = cmp.Or(revision, page.Header.Revision)
		if err := v.search(ctx, page.Kvs, found); err != nil {
			return nil, 0, err
		}
		if more = page.More && len(page.Kvs) > 0; more {
			begin = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
		}
	}
	names = slices.Sorted(maps.Keys(found))
	if len(names) > maxElections {
		v.report(tooMany(len(names)))
		names = names[:maxElections]
	}
	return names, revision, nil
}

// search adds to found the elections of which there is a candidate among the keys, which were read
// without their leases.
func (v *View) search(ctx context.Context, kvs []*mvccpb.KeyValue, found map[string]bool) error {
	var like []*mvccpb.KeyValue
	for _, kv := range kvs {
		_, id := split(string(kv.Key))
		kv.Lease, _ = strconv.ParseInt(id, 16, 64)
		if _, ok := electionOf(kv); ok {
			like = append(like, kv)
		}
	}
	for part := range slices.Chunk(like, pageLeases) {
		if err := v.attached(ctx, part, found); err != nil {
			return err
		}
	}
	return nil
}

// attached is search for keys that are named like candidates and have the leases in their names. Keys
// that are only named so may be many, and their values large: so it compares all leases with one
// request, and reads the keys only if there is a candidate among them.
func (v *View) attached(ctx context.Context, like []*mvccpb.KeyValue, found map[string]bool) error {
	var none []clientv3.Cmp
	var reads []clientv3.Op
	for _, kv := range like {
		if name, _ := electionOf(kv); !found[name] {
			none = append(none, clientv3.Compare(clientv3.LeaseValue(string(kv.Key)), "!=", kv.Lease))
			reads = append(reads, clientv3.OpGet(string(kv.Key)))
		}
	}
	if len(reads) == 0 {
		return nil
	}
	once, cancel := context.WithTimeout(ctx, v.cfg.Conn.CommandTimeout)
	defer cancel()
	// Without a read in it, a member that lags behind would answer from an old state.
	count := clientv3.OpGet(string(like[0].Key), clientv3.WithCountOnly())
	answer, err := v.cfg.Client.Txn(once).If(none...).Then(count).Else(reads...).Commit()
	if err != nil {
		return err
	}
	for _, of := range answer.Responses {
		for _, kv := range of.GetResponseRange().Kvs {
			if name, ok := electionOf(kv); ok {
				found[name] = true
			}
		}
	}
	return nil
}

func tooMany(n int) string {
	return fmt.Sprintf("there are %d elections, and only %d of them are shown; name one (eldest lab ELECTION), or use --namespace", n, maxElections)
}

// readElection reads the range of an election as of a revision; 0 means now.
func (v *View) readElection(ctx context.Context, name string, revision int64) (*election, error) {
	begin, end := keys.Range(name)
	answer, err := v.get(ctx, begin, clientv3.WithRange(end), clientv3.WithRev(revision))
	if err != nil {
		return nil, err
	}
	e := &election{name: name, revision: cmp.Or(revision, answer.Header.Revision)}
	for _, kv := range answer.Kvs {
		e.places = append(e.places, newPlace(name, kv))
	}
	slices.SortFunc(e.places, older)
	return e, nil
}
