package service

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/scenario"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/story"
	"github.com/eldest-io/eldest/curator/kv"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run is a run in short: one thing a line, each a millisecond after the one before it, unless it
// begins with @ms. The writer is a node or, in an earlier tenure of that node, node@token.
//
//	start n1 | resign n1 (or any action) | settled n1 | left 0 0
//	n1 leads | n1 follows n2 | n1 neither | n1 exits 0
//	join n1 7 | drop n1 9            a candidate's key is put, deleted, at a revision
//	open n1 8                        a tenure's first record
//	ask r1 n2 put a x                the client calls n2
//	put r1 a x 10 n1                 etcd, revision 10: data and record, by n1's tenure
//	record r1 put a x 10 n1 | data a x 10 | data a - 10 | raw KEY 10 | gone KEY 10
//	told r1 done 10 n1 | told r1 refused | told r1 open | told r1 Internal
//	told r1 read x 10 | told r1 missing
//	traffic n1 10                    six writes through all nodes, revisions 10 to 15
//	failing n2                       a call through n2 that ends with nothing certain
type run struct {
	t        *testing.T
	now      time.Time
	tokens   map[string]eldest.Token
	values   map[string]string // of keys, for appending
	open     map[string]*Attempt
	versions map[string]int64
	serial   int

	facts    []scenario.Fact
	attempts []Attempt
	changes  []Change
}

func read(t *testing.T, text string) *run {
	t.Helper()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b := &run{
		t: t, now: start, tokens: make(map[string]eldest.Token), values: make(map[string]string),
		open: make(map[string]*Attempt), versions: make(map[string]int64),
	}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		b.now = b.now.Add(time.Millisecond)
		if strings.HasPrefix(words[0], "@") {
			b.now = start.Add(time.Duration(b.number(words[0][1:])) * time.Millisecond)
			words = words[1:]
		}
		b.line(words...)
	}
	return b
}

// audit are the verdicts by name, for a TTL of 2 s: a hand-over takes 1 s, one after the end of a
// lease 9 s, and a node that is partitioned is certain for 2.5 s.
func (b *run) audit() map[string]story.Verdict {
	found := make(map[string]story.Verdict)
	for _, v := range Audit(b.facts, b.attempts, b.changes, Config{Config: scenario.Config{TTL: 2 * time.Second}}) {
		found[v.Name] = v
	}
	return found
}

func (b *run) line(w ...string) {
	b.t.Helper()
	switch w[0] {
	case "join":
		b.tokens[w[1]] = eldest.Token(b.number(w[2]))
		b.put("shop/"+w[1], w[1], b.number(w[2]))
	case "drop":
		b.delete("shop/"+w[1], w[2])
	case "open":
		b.record(&kvpb.Record{Method: kvpb.Record_METHOD_OPEN}, w[2], w[1])
	case "ask":
		a := &Attempt{ID: w[1], Begin: b.now, Node: w[2], Method: Method(w[3]), Key: w[4]}
		if len(w) > 5 {
			a.Value = w[5]
		}
		b.open[w[1]] = a
	case "told":
		b.told(w)
	case "put", "append", "delete":
		id, key, value, revision, by := w[1], w[2], w[3], w[4], w[5]
		b.record(&kvpb.Record{Method: methods[Method(w[0])], RequestId: id, Key: key, Value: dash(value)}, revision, by)
		switch w[0] {
		case "append":
			value = b.values[key] + value
		case "delete":
			value = "-"
		}
		b.data(key, value, revision)
	case "record":
		b.record(&kvpb.Record{Method: methods[Method(w[2])], RequestId: w[1], Key: w[3], Value: dash(w[4])}, w[5], w[6])
	case "data":
		b.data(w[1], w[2], w[3])
	case "raw":
		b.put(w[1], "x", b.number(w[2]))
	case "gone":
		b.delete(w[1], w[2])
	case "traffic":
		b.traffic(w[1], b.number(w[2]))
	case "failing":
		b.serial++
		id := fmt.Sprintf("f%d", b.serial)
		b.line("ask", id, w[1], "put", "a", id)
		b.now = b.now.Add(time.Millisecond)
		b.line("told", id, "open")
	default:
		b.fact(w)
	}
}

func (b *run) fact(w []string) {
	b.t.Helper()
	f := scenario.Fact{At: b.now}
	of := func(kind scenario.Kind, node string) { f.Kind, f.Participant = kind, node }
	switch {
	case w[0] == "left":
		f.Kind, f.Keys, f.Leases = scenario.Left, int(b.number(w[1])), int(b.number(w[2]))
	case w[0] == "settled":
		of(scenario.Settled, w[1])
		f.Token = b.tokens[w[1]]
	case w[1] == "leads":
		of(scenario.Status, w[0])
		f.Role, f.Token, f.Key = scenario.Leading, b.tokens[w[0]], "shop/"+w[0]
	case w[1] == "follows":
		of(scenario.Status, w[0])
		f.Role, f.Leader, f.Token = following, w[2], b.tokens[w[2]]
	case w[1] == "neither":
		of(scenario.Status, w[0])
		f.Role = neither
	case w[1] == "exits":
		of(scenario.Exited, w[0])
		f.Code = int(b.number(w[2]))
	default:
		of(scenario.Acted, w[1])
		f.Action, f.Key, f.Token = scenario.Action(w[0]), "shop/"+w[1], b.tokens[w[1]]
		if f.Action == scenario.CutFollower {
			f.Token = b.facts[len(b.facts)-1].Token // the leader's, of the settling before
		}
		require.True(b.t, isFault(f.Action) || f.Action == scenario.Start || f.Action == scenario.Leave, w[0])
	}
	b.facts = append(b.facts, f)
}

func (b *run) told(w []string) {
	b.t.Helper()
	a := b.open[w[1]]
	require.NotNil(b.t, a, "nobody asked for %s", w[1])
	a.At, a.Code, a.Outcome = b.now, codes.OK, Done
	switch w[2] {
	case "done":
		a.Revision = b.number(w[3])
		_, a.Token = b.who(w[4])
	case "refused":
		a.Code, a.Outcome = codes.Unavailable, Refused
	case "open":
		a.Code, a.Outcome = codes.DeadlineExceeded, Open
	case "read":
		a.Found, a.Revision = w[3], b.number(w[4])
	case "missing":
		a.Code, a.Missing = codes.NotFound, true
		if a.Method == Delete {
			a.Outcome = Refused
		}
	default:
		require.NoError(b.t, a.Code.UnmarshalJSON([]byte(`"`+strings.ToUpper(w[2])+`"`)))
		a.Outcome = Open
	}
	if a.Method == Get && a.Outcome != Done {
		a.Outcome = Failed
	}
	a.Answer = a.Code.String()
	b.attempts = append(b.attempts, *a)
}

func (b *run) traffic(by string, revision int64) {
	b.t.Helper()
	for i := range int64(2 * nodes) {
		id, r := fmt.Sprintf("t%d", revision+i), fmt.Sprint(revision+i)
		b.line("ask", id, fmt.Sprintf("n%d", i%nodes+1), "put", "a", id)
		b.line("put", id, "a", id, r, by)
		b.now = b.now.Add(time.Millisecond)
		b.line("told", id, "done", r, by)
	}
}

// record adds a record as the service would.
func (b *run) record(r *kvpb.Record, revision, by string) {
	b.t.Helper()
	node, token := b.who(by)
	r.Token, r.LeaderKey = int64(token), "shop/"+node
	data, err := proto.Marshal(r)
	require.NoError(b.t, err)
	b.serial++
	b.put(fmt.Sprintf("%s%d", kv.SpaceOf(Election).Trail(), b.serial), string(data), b.number(revision))
}

func (b *run) data(key, value, revision string) {
	b.t.Helper()
	etcdKey := kv.SpaceOf(Election).Data(key)
	if value == "-" {
		delete(b.values, key)
		delete(b.versions, etcdKey)
		b.delete(etcdKey, revision)
		return
	}
	b.values[key] = value
	b.put(etcdKey, value, b.number(revision))
}

func (b *run) put(key, value string, revision int64) {
	b.versions[key]++
	b.changes = append(b.changes, &clientv3.Event{Kv: &mvccpb.KeyValue{
		Key: []byte(key), Value: []byte(value), ModRevision: revision, CreateRevision: revision, Version: b.versions[key],
	}})
}

func (b *run) delete(key, revision string) {
	b.changes = append(b.changes, &clientv3.Event{Type: clientv3.EventTypeDelete, Kv: &mvccpb.KeyValue{Key: []byte(key), ModRevision: b.number(revision)}})
}

// who reads "n1" or "n1@2".
func (b *run) who(by string) (node string, token eldest.Token) {
	b.t.Helper()
	node, old, ok := strings.Cut(by, "@")
	if ok {
		return node, eldest.Token(b.number(old))
	}
	return node, b.tokens[node]
}

func (b *run) number(word string) int64 {
	b.t.Helper()
	var n int64
	_, err := fmt.Sscan(word, &n)
	require.NoError(b.t, err, word)
	return n
}

func dash(value string) []byte {
	if value == "-" {
		return nil
	}
	return []byte(value)
}
