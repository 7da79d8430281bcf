package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/lab/oracle"
	"github.com/eldest-io/eldest/election"
	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// The judges are tested: each must find the given violations, and accept what is correct.

// told is a small load, whose record is judged: instants are in seconds.
type told struct {
	*run
	t *testing.T
}

func tell(t *testing.T) *told {
	record, err := newRecord(10 * time.Second)
	require.NoError(t, err)
	t.Cleanup(record.close)
	return &told{&run{book: newBook(), record: record}, t}
}

// of returns the participant with a token.
func (r *told) of(token eldest.Token) *participant {
	return &participant{run: r.run, name: fmt.Sprint("p", token), token: token}
}

func (r *told) at(second int) time.Time {
	return r.record.begun.Add(time.Duration(second) * time.Second)
}

// tenure records that a participant joins, wins and ends; 0 is never.
func (r *told) tenure(token eldest.Token, joined, won, ended int) *told {
	p, key := r.of(token), fmt.Sprintf("%s/%x", candidates, token)
	p.registered(election.RegisteredEvent{Token: token, Key: key, At: r.at(joined)})
	if won > 0 {
		p.won(election.WonEvent{Token: token, Key: key, At: r.at(won)})
	}
	if ended > 0 {
		p.ended(election.EndedEvent{Token: token, Key: key, Led: won > 0, Cause: eldest.ErrResigned, At: r.at(ended)})
	}
	return r
}

// does records an event of the participant with a token.
func (r *told) does(second int, token eldest.Token, e oracle.Event) *told {
	e.At = r.at(second).Sub(r.record.begun)
	r.of(token).tell(e)
	return r
}

// wrote records a write of a tenure; revision 0: it is not in etcd.
func (r *told) wrote(token eldest.Token, outcome oracle.Kind, revision int64) *told {
	e := oracle.Event{Kind: oracle.Sent, Token: int64(token), Write: fmt.Sprintf("%s%020d/0", written, token)}
	r.does(2, token, e)
	e.Kind = outcome
	r.does(3, token, e)
	if revision > 0 {
		require.NoError(r.t, r.record.Change(oracle.Change{Rev: revision, Key: e.Write, Value: oracle.WriteValue(int64(token), e.Write)}))
	}
	return r
}

// lists records five lists of the queue, from the given second on.
func (r *told) lists(from, every int, tokens ...int) *told {
	for n := range patient + 1 {
		at := r.at(from + n*every).Sub(r.record.begun)
		e := oracle.Event{Kind: oracle.Queue, At: at, Until: at + time.Millisecond}
		for _, token := range tokens {
			e.Keys = append(e.Keys, fmt.Sprintf("%s/%x", candidates, token))
		}
		r.record.tell(e)
	}
	return r
}

// The rules are the oracle's, and tested there; this tests that each receives its events.
func TestTheRecordIsJudged(t *testing.T) {
	left := oracle.Event{Kind: oracle.Exited, Lost: true}
	for name, tc := range map[string]struct {
		told func(*told) *told
		want string
	}{
		"nothing is wrong": {func(r *told) *told {
			r.tenure(2, 1, 3, 5).does(3, 2, oracle.Event{Kind: oracle.Removed, Token: 2}).tenure(3, 1, 4, 6).tenure(7, 1, 6, 0)
			r.wrote(1, oracle.Acked, 11).wrote(2, oracle.Refused, 0).wrote(3, oracle.Unclear, 13).wrote(4, oracle.Unclear, 0)
			return r.tenure(8, 1, 0, 0).does(3, 8, oracle.Event{Kind: oracle.Leaving}).lists(7, 1, 7)
		}, ""},
		"an overlap":              {func(r *told) *told { return r.tenure(2, 1, 3, 5).tenure(3, 1, 4, 6) }, "p3 won (token 3) while p2 (token 2) still led, until 5s"},
		"no leader for long":      {func(r *told) *told { return r.tenure(2, 1, 20, 0) }, "token 1 ended: p2 leads after 18s, later than 10s"},
		"tokens fall":             {func(r *told) *told { return r.tenure(3, 1, 3, 4).tenure(2, 1, 5, 6) }, "p2 won with token 2 after p3 had won with token 3"},
		"a write is lost":         {func(r *told) *told { return r.wrote(1, oracle.Acked, 11).wrote(2, oracle.Acked, 0) }, "was acknowledged to p2 but is not in the store"},
		"a write was not refused": {func(r *told) *told { return r.wrote(1, oracle.Refused, 11) }, "was refused to p1 but applied, at"},
		"an old token's write":    {func(r *told) *told { return r.wrote(1, oracle.Acked, 11).wrote(2, oracle.Acked, 10) }, "of token 1 committed at 11 after one of token 2"},
		"one is lost":             {func(r *told) *told { return r.tenure(2, 1, 3, 0).tenure(3, 1, 0, 0).lists(4, 1, 2) }, "p3 has been a candidate since 1s, but its key is not in the queue"},
		"one is strange":          {func(r *told) *told { return r.tenure(2, 1, 3, 0).lists(4, 1, 2, 9) }, "key load/9 is in the queue, but is orphaned: no candidate owns it"},
		"one is stuck":            {func(r *told) *told { return r.tenure(2, 1, 0, 0).lists(4, 3, 2) }, "key load/2 has been first for 12s, but its owner does not lead"},
		"a lease was left":        {func(r *told) *told { return r.tenure(2, 1, 3, 4).does(4, 2, left).lists(5, 2, 2) }, ""},
		"long ago":                {func(r *told) *told { return r.tenure(2, 1, 3, 4).does(4, 2, left).lists(5, 3, 2) }, "p2 left it there at 4s: an orphaned key"},
	} {
		t.Run(name, func(t *testing.T) {
			r := tc.told(tell(t).tenure(1, 1, 1, 2))
			r.book.judge(r.record)
			wrong := slices.Concat(r.book.violations, r.book.lates)
			if tc.want == "" {
				require.Empty(t, wrong)
			} else {
				require.Contains(t, fmt.Sprint(wrong), tc.want)
			}
		})
	}
}

// A write that could not be removed from etcd is read again, and is no second write; a run whose
// record cannot be read is not without fault.
func TestTheRecordIsRead(t *testing.T) {
	r := tell(t).wrote(1, oracle.Acked, 11)
	r.wrote(2, oracle.Acked, 12).does(4, 1, oracle.Event{Kind: oracle.Leaving})
	key := fmt.Sprintf("%s%020d/0", written, 2)
	require.NoError(t, r.record.Change(oracle.Change{Rev: 12, Key: key, Value: oracle.WriteValue(2, key)}))
	r.book.judge(r.record)
	require.Empty(t, r.book.violations)
	require.EqualValues(t, 2, r.book.counted("acknowledged writes found in etcd"))

	r = tell(t)
	require.NoError(t, r.record.file.Close())
	r.book.judge(r.record)
	require.Contains(t, fmt.Sprint(r.book.violations), "the record")
}

// A record of ten minutes has some tens of thousands of events.
func TestTheRecordTakesNoMemory(t *testing.T) {
	r := tell(t)
	before := weigh(time.Now())
	for n := range 100_000 {
		r.record.tell(oracle.Event{Who: "a", Kind: oracle.Sent, Token: 1, Write: fmt.Sprint(n)})
	}
	require.Less(t, weigh(time.Now()).Heap-before.Heap, int64(100<<10))
}

// What ends a tenure has ended it when it returns, and for its own reason.
func TestDeparturesAreJudged(t *testing.T) {
	l := electiontest.Join(t, etcdtest.Shared(t).Client(t), "departures").Lead(t)
	wrong := func(end error, do func(context.Context, *participant) error) string {
		p, over, w := tell(t).of(l.Token()), make(chan error, 1), *resign
		p.tenure, w.do = l, do
		over <- end
		p.depart(&w, "tenure", over)
		return fmt.Sprint(p.book.violations)
	}
	nothing := func(context.Context, *participant) error { return nil }
	require.Contains(t, wrong(eldest.ErrResigned, nothing), "resign: the tenure")
	require.Equal(t, "[]", wrong(eldest.ErrResigned, resign.do))
	require.Equal(t, "[]", wrong(eldest.ErrSessionLost, resign.do), "a fault was quicker")
	require.Contains(t, wrong(eldest.ErrWithdrawn, resign.do), "resign: the campaign or tenure ended with")
}

func TestAnUndocumentedAnswerIsFound(t *testing.T) {
	conn, err := grpc.NewClient("127.0.0.1:1", grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	r := tell(t)
	r.attempt(&node{conn: conn}, "1", "1")
	require.Contains(t, fmt.Sprint(r.book.violations), "UNAVAILABLE without its detail")
}

func TestWhatIsStuckIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &run{book: newBook(), seen: make([]atomic.Int64, 2)}
		require.Error(t, r.timed("a call that ends with its context", func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}))
		require.NoError(t, r.timed("a call", func(context.Context) error { return nil }))
		r.seen[0].Store(8)
		r.converge(t.Context(), 7)
		require.Zero(t, r.book.counted("convergences"))
		require.Equal(t, []string{"stuck: a call that ends with its context for 30s", "observer 1 has not been notified of token 7 for 30s"}, r.book.lates)
		r.seen[1].Store(7)
		r.converge(t.Context(), 7)
		require.EqualValues(t, 1, r.book.counted("convergences"))
	})
}

func TestGrowthIsJudged(t *testing.T) {
	series := func(n int, f func(i int) int64) (all []Sample) {
		for i := range n {
			all = append(all, Sample{Heap: f(i)})
		}
		return all
	}
	heap := func(s Sample) int64 { return s.Heap }
	require.False(t, flat(series(60, func(i int) int64 { return 1000 + int64(i%7)*10 }), heap).Grew(), "noise")
	require.False(t, flat(series(60, func(i int) int64 { return int64(min(1000, 500+100*i)) }), heap).Grew(), "warming up")
	require.False(t, flat(series(60, func(i int) int64 { return 1000 + int64(i%10/9)*9000 }), heap).Grew(), "peaks")
	require.False(t, flat(series(60, func(i int) int64 { return 1000 + int64(i/40*(i%3))*500 }), heap).Grew(), "two of three samples in calls")
	grown := flat(series(60, func(i int) int64 { return 1000 + 4*int64(i) }), heap)
	require.True(t, grown.Grew(), "a slow leak: %+v", grown)
	require.False(t, flat(series(30, func(i int) int64 { return int64(i) }), heap).Judged, "too short")
	require.False(t, flat(nil, heap).Judged)
	require.False(t, flat(series(60, func(int) int64 { return 0 }), heap).Judged, "the system does not tell")
}

func TestALoadThatWasNotReachedIsInvalid(t *testing.T) {
	s := Full()
	book := newBook()
	book.add("departures", int64(0.79*600*10))
	missed := s.missed(book)
	require.Contains(t, missed, "departures: 4740 of 6000")
	require.Len(t, missed, 14, "nothing else has happened at all: %q", missed)
	book.add("departures", 100)
	require.Len(t, s.missed(book), 13)

	verdict := func(violations, late int, missed ...string) string {
		book := newBook()
		for range violations {
			book.violation("one")
		}
		for range late {
			book.late("one")
		}
		sum := &Summary{Scale: s, Missed: missed}
		sum.judge(book)
		return sum.Verdict
	}
	require.Equal(t, Held, verdict(0, 0))
	require.Equal(t, Invalid, verdict(0, 0, "departures"))
	require.Equal(t, Violated, verdict(1, 0, "departures"), "what was seen was seen")
	require.Equal(t, Violated, verdict(0, 1), "nobody was starved")
	require.Equal(t, Invalid, verdict(0, 1, "departures"))
}

func TestTimesAndKinds(t *testing.T) {
	book, sum := newBook(), &Summary{}
	for i := 1; i <= 1000; i++ {
		book.took("op", time.Duration(i)*time.Millisecond)
	}
	book.took("years", 10_000*time.Hour)
	book.failed("op", nil)
	book.report(sum)
	took := sum.Took["op"]
	require.EqualValues(t, 1000, took.Times)
	require.InEpsilon(t, 500, took.P50, 0.01)
	require.InEpsilon(t, 990, took.P99, 0.01)
	require.InEpsilon(t, 1000, took.Max, 0.01)
	require.InEpsilon(t, longest.Milliseconds(), sum.Took["years"].Max, 0.01)
	require.Empty(t, sum.Errors)
	require.Equal(t, "session lost", kindOf(fmt.Errorf("%w: %w", eldest.ErrNotLeading, eldest.ErrSessionLost)))
	require.Equal(t, "session lost", kindOf(fmt.Errorf("%w: %w", eldest.ErrSessionLost, eldest.ErrUnavailable)))
	require.Equal(t, "etcd does not answer", kindOf(fmt.Errorf("observe: %w", status.Error(codes.Unavailable, "EOF"))))
	require.Equal(t, "anything", kindOf(errors.New("anything")))
}
