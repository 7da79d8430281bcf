package load

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
	"github.com/eldest-io/eldest/elector"
)

// called is where the service writes: the number of the burst, and of the call.
const called = "/load/called/"

// answerIn is the deadline of a call, and overdue how long after it an answer counts as
// none.
const (
	answerIn = 20 * time.Second
	overdue  = 30 * time.Second
)

// documented are the codes that a call may end with (package curator, Codes); those that
// this service or these callers have no reason for are left out.
var documented = map[codes.Code]bool{
	codes.OK: true, codes.Unavailable: true, codes.DeadlineExceeded: true,
	codes.Unknown: true, // the service's own, where the outcome is unknown
}

// call sends bursts of calls to nodes that do not lead, until ctx ends.
func (r *run) call(ctx context.Context) {
	for burst := range beats(ctx, r.scale.CallEvery) {
		var followers []*node
		for _, n := range r.nodes {
			if n.Status().Role() != elector.Leading {
				followers = append(followers, n)
			}
		}
		r.burst(followers, burst)
	}
}

// burst sends all calls at once, waits for the answers, and asks etcd for what they
// wrote.
func (r *run) burst(to []*node, burst int) {
	prefix := fmt.Sprintf("%s%06d/", called, burst)
	var together sync.WaitGroup
	begun := time.Now()
	answers := oracle.NewLog(func() time.Duration { return time.Since(begun) }, func() int64 { return 0 })
	start := make(chan struct{})
	for i := range r.scale.Calls {
		n := to[i%len(to)]
		together.Go(func() {
			<-start
			r.answer(n, fmt.Sprintf("%s%06d", prefix, i), answers)
		})
	}
	begun = time.Now()
	close(start)
	together.Wait()
	r.book.took("a burst of calls", time.Since(begun))
	ctx, cancel := context.WithTimeout(context.Background(), r.scale.patience())
	defer cancel()
	h := &oracle.History{About: oracle.About{Prefix: service + "/", Data: strings.TrimSuffix(prefix, "/")}, Events: answers.Events()}
	if r.audit(ctx, prefix, func(c oracle.Change) { h.Changes = append(h.Changes, c) }) {
		slices.SortFunc(h.Changes, func(a, b oracle.Change) int { return cmp.Compare(a.Rev, b.Rev) })
		r.judgeWrites("calls", h)
	}
	r.book.count("bursts")
}

// answer makes one call and notes how it ended.
func (r *run) answer(n *node, key string, answers *oracle.Log) {
	ctx, cancel := context.WithTimeout(context.Background(), answerIn)
	defer cancel()
	begun := time.Now()
	answers.Add(oracle.Event{Kind: oracle.Sent, Who: "a caller", Write: key})
	_, err := n.Put(ctx, &kvpb.PutRequest{RequestId: key, Key: key})
	took := time.Since(begun)
	r.book.took("a call", took)
	code, kind := status.Code(err), status.Code(err).String()
	detail, lost := curator.LostLeadership(err, service)
	untouched := lost && detail.GetNothingApplied()
	switch {
	case untouched:
		kind += ", nothing applied"
	case lost:
		kind += ", leadership lost"
	}
	r.book.count("calls: " + kind)
	r.book.count("calls")
	switch {
	case !documented[code]:
		r.book.violation("a call ended with %v, which is not documented: %v", code, err)
	case code == codes.Unavailable && !lost:
		r.book.violation("UNAVAILABLE without its detail: %v", err)
	case took > answerIn+overdue:
		r.book.late("a call with a deadline of %v took %v", answerIn, took)
	}
	e := oracle.Event{Kind: oracle.Unclear, Who: "a caller", Write: key}
	switch {
	case err == nil:
		e.Kind = oracle.Acked
	case untouched:
		e.Kind = oracle.Refused
	}
	answers.Add(e)
}
