package clusterview

import (
	"context"
	"fmt"
	"maps"
	"slices"

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
	for key := wholeBegin; ; {
		page, err := v.get(ctx, key, clientv3.WithRange(wholeEnd), clientv3.WithKeysOnly(), clientv3.WithLimit(pageKeys), clientv3.WithRev(revision))
		if err != nil {
			return nil, 0, err
		}
		if revision == 0 {
			revision = page.Header.Revision
		}
		if err := v.attached(ctx, page.Kvs, found); err != nil {
			return nil, 0, err
		}
		if !page.More || len(page.Kvs) == 0 {
			break
		}
		key = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
	}
	v.mu.Lock()
	for name := range v.elections {
		found[name] = true
	}
	v.mu.Unlock()
	names = slices.Sorted(maps.Keys(found))
	if len(names) > maxElections {
		v.report(tooMany(len(names)))
		names = names[:maxElections]
	}
	return names, revision, nil
}

// attached adds to found the elections of which there is a candidate among the keys: a key that is
// named for a lease and attached to it.
func (v *View) attached(ctx context.Context, kvs []*mvccpb.KeyValue, found map[string]bool) error {
	var like []string
	for _, kv := range kvs {
		if _, _, ok := named(string(kv.Key)); ok {
			like = append(like, string(kv.Key))
		}
	}
	for part := range slices.Chunk(like, pageLeases) {
		if err := v.search(ctx, part, found); err != nil {
			return err
		}
	}
	return nil
}

// search is attached for keys that are all named for leases, and are few enough for one request. It
// halves them until the candidates are found. Keys that are only named like candidates may be many,
// and their values large: so it does not read them, and one request excludes all that are given.
func (v *View) search(ctx context.Context, like []string, found map[string]bool) error {
	names := map[string]bool{}
	var compared []string
	var none []clientv3.Cmp
	for _, key := range like {
		name, lease, _ := named(key)
		if found[name] {
			continue
		}
		names[name] = true
		compared = append(compared, key)
		none = append(none, clientv3.Compare(clientv3.LeaseValue(key), "!=", lease))
	}
	if len(compared) == 0 {
		return nil
	}
	once, cancel := context.WithTimeout(ctx, v.cfg.Conn.CommandTimeout)
	// Without a read in it, a member that lags behind would answer from an old state.
	answer, err := v.cfg.Client.Txn(once).If(none...).Then(clientv3.OpGet(compared[0], clientv3.WithCountOnly())).Commit()
	cancel()
	switch {
	case err != nil:
		return err
	case answer.Succeeded:
		return nil
	case len(names) == 1:
		maps.Copy(found, names)
		return nil
	}
	half := len(compared) / 2
	if err := v.search(ctx, compared[:half], found); err != nil {
		return err
	}
	return v.search(ctx, compared[half:], found)
}

func tooMany(n int) string {
	return fmt.Sprintf("there are %d elections, and only %d of them are shown; name one (eldest lab ELECTION), or use --namespace", n, maxElections)
}

// readElection reads the range of an election as of a revision; 0 means now.
func (v *View) readElection(ctx context.Context, name string, revision int64) (*election, error) {
	directory, short := split(name)
	begin, end := keys.Range(short)
	answer, err := v.get(ctx, directory+begin, clientv3.WithRange(directory+end), clientv3.WithRev(revision))
	if err != nil {
		return nil, err
	}
	e := &election{name: name, revision: revision}
	if revision == 0 {
		e.revision = answer.Header.Revision
	}
	for _, kv := range answer.Kvs {
		e.places = append(e.places, newPlace(name, kv))
	}
	slices.SortFunc(e.places, older)
	return e, nil
}
