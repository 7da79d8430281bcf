package memetcd_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/memetcd"
)

// The same random requests get the same responses from an etcd in memory and from a real one:
// puts, deletions, ranges, nested transactions, leases, and watches, with all their options, right
// and wrong ones.
//
// The test fails if any rule of the store differs: removing one line of memetcd is enough.
func TestSameAsEtcd(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			p := newPair(t, seed)
			for range 400 {
				p.step()
			}
			p.compareWatches()
		})
	}
}

const names = "abcdef"

// pair is a real etcd and one in memory, which get the same requests.
type pair struct {
	t       *testing.T
	ctx     context.Context
	dice    *rand.Rand
	both    [2]*clientv3.Client
	leases  [2][]clientv3.LeaseID // in the order of their grants; the first one does not exist
	watches []watched
	did     []string // for failures
}

// watched is a range that is watched in both.
type watched struct {
	key  string
	op   clientv3.Op // the options of its range
	puts bool
	dels bool
	both [2]clientv3.WatchChan
}

func newPair(t *testing.T, seed uint64) *pair {
	p := &pair{t: t, ctx: etcdtest.ContextFor(t, 3*time.Minute), dice: rand.New(rand.NewPCG(seed, 0))}
	p.both[0] = etcdtest.Start(t, etcdtest.Config{Members: 1}).Client(t)
	memory := memetcd.New()
	t.Cleanup(memory.Close)
	p.both[1], _ = memory.Client()
	t.Cleanup(func() { _ = p.both[1].Close() })
	p.leases = [2][]clientv3.LeaseID{{1234567}, {1234567}}
	for { // so that both begin at the same revision
		theirs, mine := p.now(p.both[0]), p.now(p.both[1])
		if mine == theirs {
			return p
		}
		require.Less(t, mine, theirs)
		require.NoError(t, etcdtest.Err(p.both[1].Put(p.ctx, "outside", "")))
	}
}

// same requires that f returns the same text for both.
func (p *pair) same(what string, f func(i int, c *clientv3.Client) string) {
	p.t.Helper()
	p.did = append(p.did, what)
	theirs, mine := f(0, p.both[0]), f(1, p.both[1])
	require.Equal(p.t, theirs, mine, "after\n%s", strings.Join(p.did[max(0, len(p.did)-12):], "\n"))
}

func (p *pair) step() {
	switch n := p.dice.IntN(20); {
	case n == 0:
		ttl := []int64{1000, 9_000_000_000, 9_000_000_001}[p.dice.IntN(3)]
		p.same(fmt.Sprint("grant ", ttl), func(i int, c *clientv3.Client) string {
			l, err := c.Grant(p.ctx, ttl)
			if err != nil {
				return err.Error()
			}
			p.leases[i] = append(p.leases[i], l.ID)
			return fmt.Sprint(l.TTL, l.Revision)
		})
	case n == 1:
		k := p.dice.IntN(len(p.leases[0]))
		p.same(fmt.Sprint("lease ", k), func(i int, c *clientv3.Client) string { return p.lease(i, c, p.leases[i][k]) })
	case n == 2 && p.dice.IntN(2) == 0:
		k := p.dice.IntN(len(p.leases[0]))
		p.same(fmt.Sprint("revoke ", k), func(i int, c *clientv3.Client) string {
			r, err := c.Revoke(p.ctx, p.leases[i][k])
			if err != nil {
				return err.Error()
			}
			return fmt.Sprint(r.Header.Revision)
		})
	case n == 3:
		p.watch()
	default:
		op := p.op(3)
		p.same(op.text, func(i int, c *clientv3.Client) string {
			resp, err := c.Do(p.ctx, op.with(p.leases[i]))
			if err != nil {
				return err.Error()
			}
			switch {
			case resp.Get() != nil:
				return p.get((*pb.RangeResponse)(resp.Get()), i)
			case resp.Put() != nil:
				return p.put((*pb.PutResponse)(resp.Put()), i)
			case resp.Del() != nil:
				return p.del((*pb.DeleteRangeResponse)(resp.Del()), i)
			default:
				return p.txn((*pb.TxnResponse)(resp.Txn()), i)
			}
		})
	}
}

func (p *pair) lease(i int, c *clientv3.Client, id clientv3.LeaseID) string {
	kept, err := c.KeepAliveOnce(p.ctx, id)
	if err != nil && !strings.Contains(err.Error(), "not found") {
		return err.Error()
	}
	var ttl int64
	if kept != nil {
		ttl = kept.TTL
	}
	left, err := c.TimeToLive(p.ctx, id, clientv3.WithAttachedKeys())
	if err != nil {
		return err.Error()
	}
	slices.SortFunc(left.Keys, slices.Compare)
	all, err := c.Leases(p.ctx)
	if err != nil {
		return err.Error()
	}
	known := slices.ContainsFunc(all.Leases, func(l clientv3.LeaseStatus) bool { return l.ID == id })
	return fmt.Sprintf("%d %d %v %q %v", ttl, left.GrantedTTL, left.TTL > 0, left.Keys, known)
}

// op is an operation, and its text. The lease IDs of the two differ.
type op struct {
	text string
	with func(leases []clientv3.LeaseID) clientv3.Op
}

// span returns a key, and the options of a range that begins with it.
func (p *pair) span() (key string, opts []clientv3.OpOption, text string) {
	key = string(names[p.dice.IntN(len(names))])
	switch p.dice.IntN(8) {
	case 0:
		end := string(names[p.dice.IntN(len(names))])
		return key, []clientv3.OpOption{clientv3.WithRange(end)}, key + ".." + end
	case 1:
		return key, []clientv3.OpOption{clientv3.WithFromKey()}, key + ".."
	case 2:
		return key, []clientv3.OpOption{clientv3.WithPrefix()}, key + "*"
	case 3:
		return "a", []clientv3.OpOption{clientv3.WithRange("g")}, "all"
	default:
		return key, nil, key
	}
}

// maybe returns an option with a given probability.
func (p *pair) maybe(opts []clientv3.OpOption, text *string, one float64, name string, o clientv3.OpOption) []clientv3.OpOption {
	if p.dice.Float64() >= one {
		return opts
	}
	*text += " " + name
	return append(opts, o)
}

func (p *pair) op(depth int) op {
	switch n := p.dice.IntN(10); {
	case n < 3:
		key, opts, text := p.span()
		text = "get " + text
		opts = p.maybe(opts, &text, .1, "keys", clientv3.WithKeysOnly())
		opts = p.maybe(opts, &text, .1, "count", clientv3.WithCountOnly())
		limit, revision := p.dice.Int64N(4), p.revision()
		opts = p.maybe(opts, &text, .3, fmt.Sprint("limit ", limit), clientv3.WithLimit(limit))
		opts = p.maybe(opts, &text, .2, fmt.Sprint("revision ", revision), clientv3.WithRev(revision))
		for name, bound := range map[string]func(int64) clientv3.OpOption{
			"min mod": clientv3.WithMinModRev, "max mod": clientv3.WithMaxModRev, "min create": clientv3.WithMinCreateRev, "max create": clientv3.WithMaxCreateRev,
		} {
			at := p.revision()
			opts = p.maybe(opts, &text, .1, fmt.Sprint(name, at), bound(at))
		}
		target, order := clientv3.SortTarget(p.dice.IntN(5)), clientv3.SortOrder(p.dice.IntN(3))
		opts = p.maybe(opts, &text, .4, fmt.Sprint("sort ", target, order), clientv3.WithSort(target, order))
		return op{text, func([]clientv3.LeaseID) clientv3.Op { return clientv3.OpGet(key, opts...) }}
	case n < 7:
		key, value := string(names[p.dice.IntN(len(names))]), []string{"", "x", "y"}[p.dice.IntN(3)]
		text := fmt.Sprintf("put %s=%q", key, value)
		var opts []clientv3.OpOption
		opts = p.maybe(opts, &text, .3, "previous", clientv3.WithPrevKV())
		opts = p.maybe(opts, &text, .1, "ignore value", clientv3.WithIgnoreValue())
		opts = p.maybe(opts, &text, .1, "ignore lease", clientv3.WithIgnoreLease())
		k := p.dice.IntN(3 * len(p.leases[0]))
		return op{fmt.Sprint(text, " lease ", k), func(leases []clientv3.LeaseID) clientv3.Op {
			opts := slices.Clone(opts)
			if k < len(leases) {
				opts = append(opts, clientv3.WithLease(leases[k]))
			}
			return clientv3.OpPut(key, value, opts...)
		}}
	case n < 8 || depth == 0:
		key, opts, text := p.span()
		if depth < 3 && text == key+".." {
			// etcd does not compare such a deletion with the puts of its transaction, and ends its
			// process if a put then keeps a part of a key that has been deleted.
			opts, text = nil, key
		}
		text = "delete " + text
		opts = p.maybe(opts, &text, .5, "previous", clientv3.WithPrevKV())
		return op{text, func([]clientv3.LeaseID) clientv3.Op { return clientv3.OpDelete(key, opts...) }}
	default:
		return p.transaction(depth - 1)
	}
}

func (p *pair) transaction(depth int) op {
	cmps := make([]func(leases []clientv3.LeaseID) clientv3.Cmp, p.dice.IntN(3))
	text := "if"
	for i := range cmps {
		key, result := string(names[p.dice.IntN(len(names))]), []string{"=", "!=", "<", ">"}[p.dice.IntN(4)]
		kind, n, whole := p.dice.IntN(5), p.dice.Int64N(4), p.dice.IntN(4) == 0
		revision, k := p.revision()*p.dice.Int64N(2), p.dice.IntN(len(p.leases[0]))
		text += fmt.Sprint(" ", kind, key, result, n, revision, k, whole)
		cmps[i] = func(leases []clientv3.LeaseID) clientv3.Cmp {
			var c clientv3.Cmp
			switch kind {
			case 0:
				c = clientv3.Compare(clientv3.Value(key), result, []string{"", "x", "y", "z"}[n])
			case 1:
				c = clientv3.Compare(clientv3.Version(key), result, n)
			case 2:
				c = clientv3.Compare(clientv3.CreateRevision(key), result, revision)
			case 3:
				c = clientv3.Compare(clientv3.ModRevision(key), result, revision)
			default:
				if result == "<" || result == ">" {
					result = "=" // IDs are not in the same order
				}
				c = clientv3.Compare(clientv3.LeaseValue(key), result, leases[k])
			}
			if whole {
				c = c.WithRange("e")
			}
			return c
		}
	}
	var branches [2][]op
	for i := range branches {
		text += []string{" then", " else"}[i]
		for range p.dice.IntN(4) {
			o := p.op(depth)
			branches[i] = append(branches[i], o)
			text += " (" + o.text + ")"
		}
	}
	return op{text, func(leases []clientv3.LeaseID) clientv3.Op {
		var made []clientv3.Cmp
		for _, c := range cmps {
			made = append(made, c(leases))
		}
		var ops [2][]clientv3.Op
		for i, branch := range branches {
			for _, o := range branch {
				ops[i] = append(ops[i], o.with(leases))
			}
		}
		return clientv3.OpTxn(made, ops[0], ops[1])
	}}
}

// revision returns one that exists, or that will soon.
func (p *pair) revision() int64 {
	return 1 + p.dice.Int64N(p.now(p.both[1])+1)
}

func (p *pair) watch() {
	key, opts, text := p.span()
	if from, to, ranged := strings.Cut(text, ".."); ranged && to != "" && to <= from {
		return // etcd refuses an empty range
	}
	w := watched{key: key, op: clientv3.OpGet(key, opts...), puts: p.dice.IntN(4) > 0, dels: p.dice.IntN(4) > 0}
	if p.dice.IntN(2) == 0 {
		opts = append(opts, clientv3.WithRev(p.revision()+p.dice.Int64N(3)))
	}
	if p.dice.IntN(2) == 0 {
		opts = append(opts, clientv3.WithPrevKV())
	}
	if !w.puts {
		opts = append(opts, clientv3.WithFilterPut())
	}
	if !w.dels {
		opts = append(opts, clientv3.WithFilterDelete())
	}
	p.did = append(p.did, "watch "+text)
	for i, c := range p.both {
		// The first message, so that both have begun at the same revision.
		w.both[i] = c.Watch(p.ctx, key, append(opts, clientv3.WithCreatedNotify())...)
		require.True(p.t, etcdtest.Take(p.t, w.both[i], "the beginning of a watch").Created)
	}
	p.watches = append(p.watches, w)
}

// compareWatches puts and deletes all keys, so that each watch has a last event, and compares what
// the watches have reported until then.
func (p *pair) compareWatches() {
	var begin int64 // the revision before these changes
	for _, c := range p.both {
		for range 5 { // more than the revisions in the future from which on watches report
			require.NoError(p.t, etcdtest.Err(c.Put(p.ctx, "x", "")))
		}
		begin = p.now(c)
		for _, key := range names {
			require.NoError(p.t, etcdtest.Err(c.Put(p.ctx, string(key), "last")))
		}
		for _, key := range names {
			require.NoError(p.t, etcdtest.Err(c.Delete(p.ctx, string(key))))
		}
	}
	compared := 0
	for _, w := range p.watches {
		last := 0 // the last key of the range
		for i, key := range names {
			if from, to := string(w.op.KeyBytes()), string(w.op.RangeBytes()); string(key) == from || string(key) > from && (to == "\x00" || string(key) < to) {
				last = i
			}
		}
		end := begin + 1 + int64(last)
		if w.dels {
			end += int64(len(names))
		}
		if !w.puts && !w.dels {
			continue
		}
		var texts [2][]string
		for i, ch := range w.both {
			for at := int64(0); at < end; {
				resp := etcdtest.Take(p.t, ch, "an event")
				require.NoError(p.t, resp.Err())
				for _, e := range resp.Events {
					texts[i] = append(texts[i], fmt.Sprint(e.Type, p.kv(e.Kv, i), p.kv(e.PrevKv, i)))
					at = e.Kv.ModRevision
				}
			}
		}
		require.Equal(p.t, texts[0], texts[1], "watch of %q", w.key)
		compared++
	}
	require.Positive(p.t, compared)
}

// now returns the present revision.
func (p *pair) now(c *clientv3.Client) int64 {
	resp, err := c.Get(p.ctx, "x")
	require.NoError(p.t, err)
	return resp.Header.Revision
}

func (p *pair) kv(kv *mvccpb.KeyValue, i int) string {
	if kv == nil {
		return "-"
	}
	return fmt.Sprintf("{%s=%q created %d modified %d version %d lease %d}",
		kv.Key, kv.Value, kv.CreateRevision, kv.ModRevision, kv.Version, slices.Index(p.leases[i], clientv3.LeaseID(kv.Lease)))
}

func (p *pair) kvs(kvs []*mvccpb.KeyValue, i int) (all []string) {
	for _, kv := range kvs {
		all = append(all, p.kv(kv, i))
	}
	return all
}

func (p *pair) get(r *pb.RangeResponse, i int) string {
	return fmt.Sprint("got ", r.Header.Revision, r.Count, r.More, p.kvs(r.Kvs, i))
}

func (p *pair) put(r *pb.PutResponse, i int) string {
	return fmt.Sprint("put ", r.Header.Revision, p.kv(r.PrevKv, i))
}

func (p *pair) del(r *pb.DeleteRangeResponse, i int) string {
	return fmt.Sprint("deleted ", r.Header.Revision, r.Deleted, p.kvs(r.PrevKvs, i))
}

func (p *pair) txn(r *pb.TxnResponse, i int) string {
	text := fmt.Sprint("txn ", r.Header.GetRevision(), r.Succeeded)
	for _, op := range r.Responses {
		switch op := op.Response.(type) {
		case *pb.ResponseOp_ResponseRange:
			text += "; " + p.get(op.ResponseRange, i)
		case *pb.ResponseOp_ResponsePut:
			text += "; " + p.put(op.ResponsePut, i)
		case *pb.ResponseOp_ResponseDeleteRange:
			text += "; " + p.del(op.ResponseDeleteRange, i)
		case *pb.ResponseOp_ResponseTxn:
			text += "; (" + p.txn(op.ResponseTxn, i) + ")"
		default:
			text += fmt.Sprintf("; %T", op)
		}
	}
	return text
}
