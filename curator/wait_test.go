package curator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/curator/internal/routing"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Row 47: two followers that take each other for the leader end a call after one hop, as does a
// node that takes itself for another.
func TestRequirement47OneHop(t *testing.T) {
	t.Parallel()
	// A node that receives a call for a tenure newer than its status may have won that tenure
	// itself. The call waits for it, but not for long.
	soonOver := waits(time.Second) // also for a connection on a busy machine
	var came atomic.Int64
	var nodes []*node
	for _, id := range []string{"a", "b", "c", "d"} {
		n := newNode(t, id, soonOver, counted(&came))
		n.once()
		nodes = append(nodes, n)
	}
	for i, n := range nodes { // the wait also bounds how long a connection takes: this makes them all
		n.follows(nodes[i^1], 6)
	}
	for _, n := range nodes {
		etcdtest.Eventually(t, func() bool { return !strings.Contains(fmt.Sprint(<-n.ask("")), "could not be made") }, "%s is connected", n.address)
	}
	came.Store(0)
	for _, tokens := range [][2]eldest.Token{{7, 7}, {9, 8}, {10, 11}} { // at one and at the other
		for i, n := range nodes {
			n.follows(nodes[i^1], tokens[i%2])
		}
		begun := time.Now()
		unary, streams := []<-chan error{nodes[0].ask(""), nodes[1].ask("")}, []*flow{nodes[2].open(bidiMethod), nodes[3].open(bidiMethod)}
		for i := range unary {
			for _, err := range []error{etcdtest.Take(t, unary[i], "the answer"), streams[i].end()} {
				require.True(t, requireRetry(t, err).GetNothingApplied())
				require.ErrorContains(t, err, "which follows node")
			}
		}
		require.EqualValues(t, 8, came.Swap(0), "four calls, and one hop of each")
		require.Less(t, time.Since(begun), DefaultWait, "somebody waited")
	}
	n, other := newNode(t, "n", soonOver), newNode(t, "other")
	other.address = n.address
	n.follows(other, 7)
	n.untouched("which follows node")
}

// A forwarded call is served in the tenure that it was meant for, or not at all.
func TestForwardedForAnotherTenure(t *testing.T) {
	t.Parallel()
	leader, follower := newNode(t, "leader"), newNode(t, "follower", waits(2*time.Second))
	follower.once() // or the answer would be that of a later attempt, which had no time for a connection
	leader.leads(7, echoing)
	follower.follows(leader, 6)
	follower.untouched(`node "follower" forwarded to "leader", which leads with token 7 instead of 6`)
	leader.loses()
	follower.follows(leader, 7)
	follower.untouched("which does not lead with token 7")
	require.Zero(t, leader.calls.Load())

	leader.leads(9, echoing)
	for token, want := range map[string]codes.Code{"9": codes.OK, "10": codes.Unavailable, "1": codes.Unavailable, "9223372036854775807": codes.Unavailable} {
		_, err := leader.unary(claiming(etcdtest.Context(t), "other", token), "")
		requireCode(t, want, err)
	}
}

// A follower may receive a tenure before it is set up at the leader: the first calls wait until it
// is.
func TestForwardedToATenureThatIsBeingSetUp(t *testing.T) {
	var came atomic.Int64
	leader, follower := newNode(t, "leader", counted(&came)), newNode(t, "follower")
	follower.follows(leader, 7)
	done := follower.ask("")
	etcdtest.Eventually(t, func() bool { return came.Load() > 0 }, "the call comes")
	for range 3 { // none of these sets up the tenure
		leader.router.Unknown(errors.New("the tenure begins"))
	}
	time.Sleep(20 * time.Millisecond)
	require.Empty(t, done, "it did not wait")
	leader.leads(7, echoing)
	require.NoError(t, etcdtest.Take(t, done, "the answer"))
}

// Row 46: while no leader is known calls wait, and then are served or forwarded.
func TestRequirement46WaitForALeader(t *testing.T) {
	leader, n := newNode(t, "leader"), newNode(t, "n")
	leader.leads(7, echoing)
	for _, becomes := range []func(){func() { n.follows(leader, 7) }, func() { n.leads(8, echoing) }} {
		n.router.Unknown(errors.New("not yet"))
		unary, stream := n.ask("hello"), n.open(bidiMethod)
		stream.send("hello")
		n.holds(2, "both wait")
		becomes()
		require.NoError(t, etcdtest.Take(t, unary, "the answer"))
		stream.expect("hello")
		stream.closes()
	}
}

// Row 46: the wait ends with the caller's context, with Config.Wait, or with the node.
func TestRequirement46WaitEnds(t *testing.T) {
	n := newNode(t, "n", waits(20*time.Millisecond))
	n.untouched("no leader is known after 20ms")
	n.untouched("Run is not running")

	n = newNode(t, "n")
	_, err := n.unary(etcdtest.ContextFor(t, 20*time.Millisecond), "")
	requireCode(t, codes.DeadlineExceeded, err)
	ctx, cancel := context.WithCancel(etcdtest.Context(t))
	done := asking(func() error { _, err := n.unary(ctx, ""); return err })
	cancel()
	requireCode(t, codes.Canceled, etcdtest.Take(t, done, "the caller"))

	stream := n.open(bidiMethod)
	require.Nil(t, n.router.Stop(fmt.Errorf("%w: stopping", eldest.ErrClosed)))
	requireRetry(t, stream.end())
	n.leads(8, echoing) // after Stop it changes nothing
	n.untouched("stopping")
}

// A caller may have as much as is left for the others.
func TestBacklogIsShared(t *testing.T) {
	b := newBacklog(8, 100)
	enter := func(caller string) (n int) {
		for b.enter(caller) {
			n++
		}
		return n
	}
	require.Equal(t, 4, enter("greedy"))
	require.Equal(t, 2, enter("modest"))
	require.Equal(t, 1, enter("third"))
	require.Zero(t, enter("greedy"))
	require.True(t, b.hold("modest", 50))
	require.False(t, b.hold("modest", 1))
	require.True(t, b.hold("greedy", 25))
	require.False(t, b.hold("third", 26))
	for range 4 {
		b.leave("greedy")
	}
	require.Equal(t, 2, enter("third"))
	b.release("modest", 50)
	b.release("greedy", 25)
	for _, caller := range []string{"modest", "modest", "third", "third", "third"} {
		b.leave(caller)
	}
	require.Empty(t, b.their, "a caller that has nothing is forgotten")
	require.Zero(t, b.all)
}

// requireBusy receives answers that mean that there is no room, and that nothing was applied.
func requireBusy(t *testing.T, times int, answers <-chan error) {
	t.Helper()
	for range times {
		err := etcdtest.Take(t, answers, "a refusal")
		requireCode(t, codes.ResourceExhausted, err, "too many calls are waiting")
		lost, ok := LostLeadership(err, "test")
		require.True(t, ok && lost.GetNothingApplied(), "%v", err)
	}
}

// callMany makes calls concurrently.
func (n *node) callMany(ctx context.Context, calls int, in string) <-chan error {
	answers := make(chan error, calls)
	for range calls {
		go func() { _, err := n.unary(ctx, in); answers <- err }()
	}
	return answers
}

// Row 63: the number of calls that wait for a leader or for a connection to one is bounded: a further call is
// refused at once, and can be sent again. Of two callers one cannot keep the other out.
func TestRow63WaitingIsBounded(t *testing.T) {
	n := newNode(t, "n", patient, func(cfg *Config) { cfg.MaxWaiting = 8 })
	other := dialTo(t, n.address)
	answers := n.callMany(etcdtest.ContextFor(t, 2*etcdtest.Patience), 20, "") // longer than each wait here
	requireBusy(t, 16, answers)
	modest := asking(func() error { return other.Invoke(etcdtest.Context(t), unaryMethod, &message{}, &message{}) })
	n.holds(5, "another caller waits")
	tenure := n.leads(7, echoing)
	require.NoError(t, etcdtest.Take(t, modest, "its answer"))
	for range 4 {
		require.NoError(t, etcdtest.Take(t, answers, "the answers"))
	}
	n.empty()

	n.router.Leave(tenure, errDeposed)
	n.followsAt(listen(t).Addr().String()) // which accepts no connection
	ctx, cancel := context.WithCancel(etcdtest.Context(t))
	answers = n.callMany(ctx, 40, "")
	requireBusy(t, 36, answers)
	cancel()
	for range 4 {
		requireCode(t, codes.Canceled, etcdtest.Take(t, answers, "the others"))
	}
	n.empty()
}

// Row 63: the messages of waiting calls are counted, also if the calls were tried elsewhere before.
func TestRow63HeldBytesAreBounded(t *testing.T) {
	const size = 100 << 10
	last, next := newNode(t, "last"), newNode(t, "next")
	follower := newNode(t, "follower", patient, func(cfg *Config) { cfg.MaxHeld = 10 * size })
	last.leadsWhile(7, echoing, expired)
	follower.follows(last, 7)
	follower.learns()
	answers := follower.callMany(etcdtest.Context(t), 20, strings.Repeat("x", size))
	requireBusy(t, 15, answers) // there was no room to wait, or none to keep what was sent
	require.LessOrEqual(t, follower.backlog.load().bytes, 10*size)
	next.leads(8, echoing)
	follower.follows(next, 8)
	for range 5 {
		require.NoError(t, etcdtest.Take(t, answers, "the answers"))
	}
	require.Zero(t, last.calls.Load())
	follower.empty()
}

// Row 56: the time in which a caller sends its message does not count as waiting for a leader, and
// the wait ends when the call begins.
//
// Fails with one limit for both: at a follower the call was UNAVAILABLE, at the leader it was not.
func TestRow56SlowUploads(t *testing.T) {
	t.Parallel()
	everywhere(t, echoing, func(t *testing.T, n, _ *node) {
		calls := []*flow{n.open(unaryMethod), n.open(bidiMethod)}
		time.Sleep(2 * n.cfg.Wait)
		for _, call := range calls {
			call.send("slow")
			require.NoError(t, call.CloseSend())
			call.expect("slow")
			require.NoError(t, call.end())
		}
	}, waits(time.Second))
}

// Row 56: nor does it count if the connection has broken when the message has arrived.
func TestRow56SlowUploadAndAnotherConnection(t *testing.T) {
	t.Parallel()
	var way network
	_, follower := pair(t, echoing, way.join, waits(2*time.Second))
	follower.answers("")
	stream := follower.open(unaryMethod)
	etcdtest.Eventually(t, func() bool { return follower.Load().Forwarding == 1 }, "it waits for the message")
	time.Sleep(follower.cfg.Wait)
	way.gone.Store(true) // the next connection takes longer than one that is there
	way.cut()
	stream.send("slow")
	require.NoError(t, stream.CloseSend())
	time.Sleep(3 * routing.Moment)
	way.gone.Store(false)
	stream.expect("slow")
	require.NoError(t, stream.end())
}

// Row 56: nor does it count if the leader's tenure ends meanwhile, and the follower had not stored
// that the method is unary; also if it receives this only when the caller has sent everything.
func TestRow56SlowUploadIsTurnedAway(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprint("late ", late), func(t *testing.T) {
			t.Parallel()
			var way network
			last, next, follower := newNode(t, "last"), newNode(t, "next"), newNode(t, "follower", way.join, waits(2*time.Second))
			last.leads(7, echoing)
			next.leads(8, echoing)
			follower.follows(last, 7)
			call := follower.open(unaryMethod)
			time.Sleep(2 * follower.cfg.Wait)
			way.late.Store(late)
			defer way.late.Store(false)
			last.loses()
			follower.follows(next, 8)
			time.Sleep(100 * time.Millisecond)
			call.send("late")
			require.NoError(t, call.CloseSend())
			time.Sleep(100 * time.Millisecond)
			way.late.Store(false)
			call.expect("late")
			require.NoError(t, call.end())
		})
	}
}

// The wait for a leader ends when the call begins, however long the call takes.
func TestCallOutlastsThePatience(t *testing.T) {
	t.Parallel()
	const wait = time.Second // also for a connection on a busy machine
	s := &script{unary: func(_ context.Context, in *message) (*message, error) {
		time.Sleep(3 * wait / 2)
		return in, nil
	}, stream: echoes}
	everywhere(t, s, func(t *testing.T, n, _ *node) {
		unary, stream := n.ask("hello"), n.open(bidiMethod)
		stream.send("first")
		stream.expect("first")
		require.NoError(t, etcdtest.Take(t, unary, "the answer"))
		stream.send("second")
		stream.expect("second")
		stream.closes()
	}, waits(wait))
}

// limited is a follower whose leader allows so many streams on a connection; all of them are in
// use.
func limited(t *testing.T, beat heartbeat, streams int) (follower *node, taken []*flow) {
	t.Helper()
	leader := newNode(t, "leader", func(cfg *Config) { cfg.MaxStreams = streams })
	leader.leads(7, echoing)
	follower = newNodeBeating(t, beat, "follower")
	follower.follows(leader, 7)
	return follower, follower.take(streams)
}

// take opens streams and keeps them under way.
func (n *node) take(streams int) (taken []*flow) {
	n.t.Helper()
	for range streams {
		f := n.open(bidiMethod)
		f.send("hello")
		f.expect("hello")
		taken = append(taken, f)
	}
	return taken
}

// A leader that limits streams does not count as failed because the heartbeat gets no stream.
func TestHeartbeatWithoutAStream(t *testing.T) {
	t.Parallel()
	for _, streams := range []int{1, 8} {
		follower, taken := limited(t, quick, streams)
		p := follower.router.Now().Peer
		etcdtest.Eventually(t, func() bool { return p.control.GetState() == connectivity.Ready }, "there is a connection to ask over")
		hasty := heartbeat{timeout: 300 * time.Millisecond} // it receives no answer, however long it waits
		require.True(t, hasty.answered(p.control))
		require.True(t, hasty.answered(p.links[0]), "all of its streams are taken")
		for _, f := range taken {
			f.send("still")
			f.expect("still")
			f.closes()
		}
		require.False(t, p.control.aborted())
	}
}

// Waiting for a stream, or for a connection to a server that accepts it and sends nothing, counts
// as waiting for a route: it is bounded, and nothing has left.
func TestWaitForAStream(t *testing.T) {
	follower, taken := limited(t, calm, 2)
	follower.cfg.Wait = 100 * time.Millisecond // counts only while there is no stream
	for range 2 {                              // before the method is known to be unary, and after
		follower.untouched("in time")
		follower.router.Now().Peer.unary.Store(unaryMethod, nil)
	}
	_, err := follower.unary(etcdtest.ContextFor(t, 10*time.Millisecond), "")
	requireCode(t, codes.DeadlineExceeded, err)
	taken[0].closes()
	etcdtest.Eventually(t, func() bool { // the connection frees the stream a moment after the end was received
		err := follower.call("")
		if err != nil {
			require.True(t, requireRetry(t, err).GetNothingApplied(), "%v", err)
		}
		return err == nil
	}, "there is a stream again")

	follower.followsAt(listen(t).Addr().String())
	for range 2 {
		begun := time.Now()
		follower.untouched("")
		require.Less(t, time.Since(begun), dialTimeout)
		follower.router.Now().Peer.unary.Store(unaryMethod, nil)
	}
}

// Row 63: one caller's streams that are not read, as many as a connection may have, delay no other
// caller's calls, and do not make the leader count as failed.
func TestRow63OneCallerStarvesNobody(t *testing.T) {
	t.Parallel()
	var read atomic.Bool
	goOn := make(chan struct{})
	const streams = 16
	leader := newNode(t, "leader", func(cfg *Config) { cfg.MaxStreams = streams })
	leader.leads(7, &script{unary: echo, stream: func(stream grpc.ServerStream) error {
		<-goOn
		read.Store(true)
		return echoes(stream)
	}})
	follower := newNodeBeating(t, brisk, "follower", waits(5*time.Second))
	follower.follows(leader, 7)

	ctx, cancel := context.WithCancel(etcdtest.ContextFor(t, 2*etcdtest.Patience))
	defer cancel()
	block := wrapperspb.Bytes(make([]byte, 128<<10))
	var sent atomic.Int64
	var sending []<-chan error
	for range streams {
		stream := follower.openWith(ctx, bidiMethod)
		sending = append(sending, asking(func() error {
			for {
				if err := stream.SendMsg(block); err != nil {
					return err
				}
				sent.Add(1)
			}
		}))
	}
	settled(t, &sent)
	for i := range 8 {
		conn := dialTo(t, follower.address)
		for range 3 {
			err := conn.Invoke(etcdtest.Context(t), unaryMethod, wrapperspb.Bytes(make([]byte, 8<<10)), &message{})
			require.NoError(t, err, "caller %d", i)
		}
	}
	time.Sleep(2 * time.Duration(brisk.misses+1) * brisk.timeout) // time in which the leader could count as failed
	p := follower.router.Now().Peer
	p.mu.Lock()
	control, links := p.control, len(p.links)
	p.mu.Unlock()
	require.NotNil(t, control, "the leader was taken for dead")
	require.NoError(t, control.calls.Cause())
	require.LessOrEqual(t, links, maxLinks)
	require.False(t, read.Load())
	close(goOn)
	cancel()
	for _, s := range sending {
		require.False(t, errors.Is(etcdtest.Take(t, s, "a sender"), context.DeadlineExceeded))
	}
}

// quick detects a failed leader within three seconds; a leader that takes longer to answer on a
// busy machine has not failed. brisk treats a leader as failed that does not answer for a second.
var (
	quick = heartbeat{every: 50 * time.Millisecond, timeout: 1500 * time.Millisecond, misses: 2}
	brisk = heartbeat{every: 20 * time.Millisecond, timeout: 500 * time.Millisecond, misses: 2}
)

// narrow is a connection with a bandwidth of so many bytes per second.
type narrow struct {
	net.Conn
	bytes int
}

func (n narrow) Write(b []byte) (int, error) {
	time.Sleep(time.Second * time.Duration(len(b)) / time.Duration(n.bytes))
	return n.Conn.Write(b)
}

// Row 63: a leader to which a large message is under way over a narrow connection does not count as
// failed.
func TestRow63HeartbeatBesideALargeMessage(t *testing.T) {
	t.Parallel()
	leader := newNode(t, "leader")
	leader.leads(7, echoing)
	follower := newNodeBeating(t, brisk, "follower", through(func(c net.Conn) net.Conn { return narrow{c, 24 << 10} }))
	follower.follows(leader, 7)
	follower.answers(strings.Repeat("x", 64<<10)) // for more than two seconds
}
