package curator

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// costBar is how much more a forwarded unary call may take than one at the leader: the
// medians of both, measured in turns.
const costBar = 2.5

// ways are the two ways to the leader's service, and what calls took on them.
type ways struct {
	direct, forwarded way
}

type way struct {
	conn *grpc.ClientConn
	took []time.Duration
}

func newWays(t testing.TB) *ways {
	leader, follower := pair(t, &script{unary: echo})
	w := &ways{direct: way{conn: leader.conn}, forwarded: way{conn: follower.conn}}
	for range 500 { // connections are made, and buffers
		w.direct.call(t)
		w.forwarded.call(t)
	}
	w.direct.took, w.forwarded.took = nil, nil
	return w
}

func (w *way) call(t testing.TB) {
	in, out := wrapperspb.Bytes(make([]byte, 128)), &message{}
	begun := time.Now()
	if err := w.conn.Invoke(context.Background(), unaryMethod, in, out); err != nil {
		t.Fatal(err)
	}
	w.took = append(w.took, time.Since(begun))
}

func (w *way) median() time.Duration {
	slices.Sort(w.took)
	return w.took[len(w.took)/2]
}

func (w *ways) ratio() float64 { return float64(w.forwarded.median()) / float64(w.direct.median()) }

// BenchmarkUnary is what a unary call costs a caller that waits for its answer: at the
// leader, through a follower, and both in turns, with the ratio of the medians.
func BenchmarkUnary(b *testing.B) {
	w := newWays(b)
	alone := func(w *way) func(b *testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			w.took = nil
			for b.Loop() {
				w.call(b)
			}
			b.ReportMetric(float64(w.median()), "p50-ns")
		}
	}
	b.Run("direct", alone(&w.direct))
	b.Run("forwarded", alone(&w.forwarded))
	b.Run("interleaved", func(b *testing.B) {
		w.direct.took, w.forwarded.took = nil, nil
		for b.Loop() {
			w.direct.call(b)
			w.forwarded.call(b)
		}
		b.ReportMetric(float64(w.direct.median()), "p50-direct-ns")
		b.ReportMetric(float64(w.forwarded.median()), "p50-forwarded-ns")
		b.ReportMetric(w.ratio(), "ratio")
	})
}

// TestForwardedUnaryCost holds the bar: taking turns, whatever else the machine does
// meets both alike. On a machine that is busy with much else, which costs those who change
// goroutines more often more, it is tried again for a minute.
func TestForwardedUnaryCost(t *testing.T) {
	w := newWays(t)
	var ratio float64
	for try, begun := 0, time.Now(); try < 5 || time.Since(begun) < time.Minute; try++ {
		w.direct.took, w.forwarded.took = nil, nil
		for range 2000 {
			w.direct.call(t)
			w.forwarded.call(t)
		}
		ratio = w.ratio()
		t.Logf("p50 direct %v, forwarded %v, ratio %.2f", w.direct.median(), w.forwarded.median(), ratio)
		if ratio <= costBar {
			return
		}
	}
	require.LessOrEqual(t, ratio, costBar)
}
