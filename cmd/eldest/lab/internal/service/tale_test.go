package service

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator/kv"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
)

// tale is a play in short: one thing a line, each a millisecond after the one before
// it, unless it begins with @ms. Who writes is a node, or, of an earlier tenure of that
// node, node@token.
//
//	start n1 | stop n1 (or any act) | probe n1 ok | probe n1 fails | settled n1 | left 0 0
//	n1 leads | n1 follows n2 | n1 neither | n1 exits 0
//	join n1 7 | leave n1 9           a candidate's key comes, goes, at a revision
//	open n1 8                        a tenure's first record
//	ask r1 n2 put a x                the client asks n2
//	put r1 a x 10 n1                 etcd, revision 10: data and record, by n1's tenure
//	record r1 put a x 10 n1 | data a x 10 | data a - 10 | raw KEY 10 | gone KEY 10
//	told r1 done 10 n1 | told r1 refused | told r1 open | told r1 Internal
//	told r1 read x 10 | told r1 missing
//	traffic n1 10                    six writes through all nodes, revisions 10 to 15
//	failing n2                       a request through n2 that ends with nothing certain
type tale struct {
	t        *testing.T
	now      time.Time
	tokens   map[string]eldest.Token
	values   map[string]string // of keys, for appending
	open     map[string]*Attempt
	versions map[string]int64
	serial   int

	facts    []Fact
	attempts []Attempt
	changes  []Change
}

func tell(t *testing.T, text string) *tale {
	t.Helper()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b := &tale{
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
		b.line(words)
	}
	return b
}

func (b *tale) audit() map[string]verdict {
	found := make(map[string]verdict)
	for _, v := range Audit(b.facts, b.attempts, b.changes, limits) {
		found[v.Name] = verdict{v.OK, strings.Join(v.Problems, "\n")}
	}
	return found
}

type verdict struct {
	ok       bool
	problems string
}

var limits = Limits{Told: time.Second, Expiry: 3 * time.Second, Certain: 3 * time.Second}

func (b *tale) line(w []string) {
	b.t.Helper()
	switch w[0] {
	case "join":
		b.tokens[w[1]] = eldest.Token(b.number(w[2]))
		b.put("shop/"+w[1], w[1], b.number(w[2]))
	case "leave":
		b.changes = append(b.changes, Change{Key: "shop/" + w[1], Revision: b.number(w[2]), Deleted: true})
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
		b.changes = append(b.changes, Change{Key: w[1], Revision: b.number(w[2]), Deleted: true})
	case "traffic":
		b.traffic(w[1], b.number(w[2]))
	case "failing":
		b.serial++
		id := fmt.Sprintf("f%d", b.serial)
		b.line([]string{"ask", id, w[1], "put", "a", id})
		b.now = b.now.Add(time.Millisecond)
		b.line([]string{"told", id, "open"})
	default:
		b.fact(w)
	}
}

func (b *tale) fact(w []string) {
	b.t.Helper()
	f := Fact{At: b.now}
	switch {
	case w[0] == "left":
		f.Kind, f.Keys, f.Leases = Left, int(b.number(w[1])), int(b.number(w[2]))
	case w[0] == "settled":
		f.Kind, f.Node, f.Token = Settled, w[1], b.tokens[w[1]]
	case w[0] == "probe":
		f.Kind, f.Node, f.OK = Probed, w[1], w[2] == "ok"
	case w[0] == "bye":
		f.Kind, f.Act, f.Node = Acted, Leave, w[1]
	case len(w) > 1 && w[1] == "leads":
		f.Kind, f.Node, f.Role, f.Token, f.Key = Status, w[0], leading, b.tokens[w[0]], "shop/"+w[0]
	case len(w) > 1 && w[1] == "follows":
		f.Kind, f.Node, f.Role, f.Leader, f.Token = Status, w[0], following, w[2], b.tokens[w[2]]
	case len(w) > 1 && w[1] == "neither":
		f.Kind, f.Node, f.Role = Status, w[0], neither
	case len(w) > 1 && w[1] == "exits":
		f.Kind, f.Node, f.Code = Exited, w[0], int(b.number(w[2]))
	default:
		f.Kind, f.Act, f.Node, f.Key, f.Token = Acted, Act(w[0]), w[1], "shop/"+w[1], b.tokens[w[1]]
		if f.Act == CutFollower {
			f.Token = b.facts[len(b.facts)-1].Token // the leader's, of the settling before
		}
		require.Contains(b.t, []Act{Stop, Kill, Suspend, Resume, CutLeader, CutFollower, Mend, Start}, f.Act)
	}
	b.facts = append(b.facts, f)
}

func (b *tale) told(w []string) {
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

func (b *tale) traffic(by string, revision int64) {
	b.t.Helper()
	for i := range int64(2 * nodes) {
		id, r := fmt.Sprintf("t%d", revision+i), fmt.Sprint(revision+i)
		b.line([]string{"ask", id, fmt.Sprintf("n%d", i%nodes+1), "put", "a", id})
		b.line([]string{"put", id, "a", id, r, by})
		b.now = b.now.Add(time.Millisecond)
		b.line([]string{"told", id, "done", r, by})
	}
}

// record adds a record as the service would.
func (b *tale) record(r *kvpb.Record, revision, by string) {
	b.t.Helper()
	node, token := b.who(by)
	r.Token, r.LeaderKey = int64(token), "shop/"+node
	data, err := proto.Marshal(r)
	require.NoError(b.t, err)
	b.serial++
	b.put(fmt.Sprintf("%s%d", kv.SpaceOf(Election).Trail(), b.serial), string(data), b.number(revision))
}

func (b *tale) data(key, value, revision string) {
	b.t.Helper()
	etcdKey := kv.SpaceOf(Election).Data(key)
	if value == "-" {
		delete(b.values, key)
		delete(b.versions, etcdKey)
		b.changes = append(b.changes, Change{Key: etcdKey, Revision: b.number(revision), Deleted: true})
		return
	}
	b.values[key] = value
	b.put(etcdKey, value, b.number(revision))
}

func (b *tale) put(key, value string, revision int64) {
	b.versions[key]++
	b.changes = append(b.changes, Change{Key: key, Value: []byte(value), Revision: revision, Create: revision, Version: b.versions[key]})
}

// who reads "n1" or "n1@2".
func (b *tale) who(by string) (node string, token eldest.Token) {
	b.t.Helper()
	node, old, ok := strings.Cut(by, "@")
	if ok {
		return node, eldest.Token(b.number(old))
	}
	return node, b.tokens[node]
}

func (b *tale) number(word string) int64 {
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
