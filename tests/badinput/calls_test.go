package badinput

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/curator"
	"github.com/eldest-io/eldest/curator/kv/kvpb"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/identity"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// pretends makes a candidate lead an election with the value of a node at an address, although it
// is not a curator.
func (s *stage) pretends(election string, value []byte) {
	s.T.Helper()
	cfg := s.config(s.session())
	cfg.Election, cfg.Value, cfg.KV, cfg.Watcher = election, value, s.Admin, s.Admin
	c := s.candidateOf(cfg)
	require.NoError(s.T, etcdtest.Err(c.Campaign(s.Ctx)))
}

// says returns the value of a node.
func says(t *testing.T, id, address string) []byte {
	t.Helper()
	value, err := identity.Protobuf{}.Encode(identity.Identity{NodeID: id, Address: address})
	require.NoError(t, err)
	return value
}

// callsSection: calls that cannot be served, and malicious calls.
func callsSection(t *testing.T) section {
	st := newStage(t, etcdtest.Shared(t), "orders")
	always := elector.Always(elector.Client(st.Admin))
	leader := st.serve("leader", always)
	leader.becomes(st, elector.Leading)
	follower := st.serve("follower", always)
	follower.becomes(st, elector.Following)
	impatient := func(cfg *curator.Config) { cfg.Wait = 200 * time.Millisecond } // they cannot know a leader
	lonely := st.serve("lonely", never, impatient)
	all := []*instance{leader, follower, lonely}

	// in makes a node that follows a leader whose value is wrong.
	in := func(kind string, value func(*instance) []byte, change ...func(*curator.Config)) *instance {
		name := st.Election + "-" + kind
		st.alias(name, "orders")
		listening := make(chan struct{})
		i := st.serve("n-"+kind, func(ctx context.Context) (elector.Clients, error) {
			<-listening // another candidate leads by then
			return always(ctx)
		}, append(change, func(cfg *curator.Config) { cfg.Elector.Election = name })...)
		st.pretends(name, value(i))
		close(listening)
		all = append(all, i)
		return i
	}
	itself := in("itself", func(i *instance) []byte { return says(t, "leader", i.address) })
	itself.becomes(st, elector.Following)
	mutual := in("mutual", func(*instance) []byte { return says(t, "leader", follower.address) })
	mutual.becomes(st, elector.Following)
	nowhere := in("nowhere", func(*instance) []byte { return says(t, "leader", "") }, impatient)
	nowhere.becomes(st, elector.Following)
	// Not a port that was just closed, which another test's server could get.
	dead := in("dead", func(*instance) []byte { return says(t, "leader", "127.0.0.1:1") })
	dead.becomes(st, elector.Following)
	garbled := in("garbled", func(*instance) []byte { return says(t, "leader", "\x1b]0;no address") })
	garbled.becomes(st, elector.Following)
	foreign := in("foreign", func(*instance) []byte { return []byte("host-17") }, impatient)

	s := st.section("curator: calls", "A unary call of a service. The count is how often its handler was called, at all nodes together. `Wait` is 1 s, and 200 ms at nodes that cannot know a leader.")
	s.left = "the leader leads, and answers a call that the follower forwards"
	s.revision, s.counted = nil, "handled"
	s.sent = func() (n int) {
		for _, i := range all {
			n += int(i.handled.Load())
		}
		return n
	}
	s.lives = func(t *testing.T) {
		require.NoError(t, etcdtest.Err(follower.Put(st.Ctx, &kvpb.PutRequest{})))
	}
	put := func(to *instance, in *kvpb.PutRequest, md ...string) func() error {
		return func() error {
			ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(st.Ctx, md...), etcdtest.Patience)
			defer cancel()
			return answer(second(to.Put(ctx, in)))
		}
	}
	refused := func(tried string, to *instance, code codes.Code, says string, md ...string) {
		var back error
		s.rows = append(s.rows, row{tried: tried, want: []error{coded(code)}, says: []string{says}, try: func() error {
			back = put(to, &kvpb.PutRequest{}, md...)()
			return back
		}, after: func(t *testing.T) {
			if to == mutual { // the answer to a call after the first one
				back = put(to, &kvpb.PutRequest{}, md...)()
			}
			switch {
			case to == mutual && len(status.Convert(back).Details()) == 0:
				// A node of another election has refused it, which proves nothing about this
				// election. Or the call was not sent, because that node has answered that it does
				// not lead.
			case code == codes.Unavailable:
				untouched(t, back, to.election)
			}
		}})
	}
	hops := func(nodes ...*instance) { // the hops of the last row's call
		before := make([]int64, len(nodes))
		last := &s.rows[len(s.rows)-1]
		try, after := last.try, last.after
		last.try = func() error {
			for i, n := range nodes {
				before[i] = n.arrived.Load()
			}
			return try()
		}
		last.after = func(t *testing.T) {
			for i, n := range nodes {
				require.EqualValues(t, 1, n.arrived.Load()-before[i], "it came more than once")
			}
			after(t)
		}
	}
	refused("no leader is known", lonely, codes.Unavailable, "can be retried")
	s.rows = append(s.rows, row{tried: "the same, with a shorter deadline of the caller", want: []error{coded(codes.DeadlineExceeded)}, try: func() error {
		ctx, cancel := context.WithTimeout(st.Ctx, 20*time.Millisecond)
		defer cancel()
		return answer(second(lonely.Put(ctx, &kvpb.PutRequest{})))
	}})
	refused("the leader's address is this node's own", itself, codes.Unavailable, "can be retried")
	refused("the leader's address is that of a node that follows another leader", mutual, codes.Unavailable, "can be retried")
	hops(mutual)
	refused("the leader has no address", nowhere, codes.Unavailable, "can be retried")
	refused("no process listens at the leader's address", dead, codes.Unavailable, "can be retried")
	refused("the leader's address is invalid", garbled, codes.Unavailable, "can be retried")
	refused("the leader's value is not a node's", foreign, codes.Unavailable, "can be retried")
	refused("a hop, made by hand, for a tenure that is not this node's", follower, codes.Unavailable, "can be retried", "eldest-hop", "5")
	hops(follower)
	refused("the same, at the leader", leader, codes.Unavailable, "can be retried", "eldest-hop", "5")
	refused("a hop for no tenure", follower, codes.InvalidArgument, "eldest-hop", "eldest-hop", "0")
	refused("a hop for tenure −1", leader, codes.InvalidArgument, "eldest-hop", "eldest-hop", "-1")
	refused("a hop for words", follower, codes.InvalidArgument, "eldest-hop", "eldest-hop", "yes")
	refused("a hop for two tenures", follower, codes.InvalidArgument, "eldest-hop", "eldest-hop", "5", "eldest-hop", "6")
	refused("a read option that is invalid", follower, codes.InvalidArgument, "eldest-read", "eldest-read", "local; max-age=2")
	refused("two read options", leader, codes.InvalidArgument, "eldest-read", "eldest-read", "local", "eldest-read", "local")
	return st.oversized(s, put, leader, follower)
}

// untouched asserts that the error guarantees to the caller that nothing was applied.
func untouched(t *testing.T, err error, election string) {
	t.Helper()
	detail, ok := curator.LostLeadership(err, election)
	require.True(t, ok, "%v", err)
	require.True(t, detail.GetNothingApplied(), "%v", err)
}

// oversized adds calls that are too large, and one of a method that does not exist.
func (s *stage) oversized(to section, put func(*instance, *kvpb.PutRequest, ...string) func() error, leader, follower *instance) section {
	large := &kvpb.PutRequest{Value: make([]byte, curator.DefaultMaxMessage+1)}
	to.rows = append(to.rows,
		row{tried: "metadata of 60 KiB, forwarded", sent: 1, try: put(follower, &kvpb.PutRequest{}, "x", strings.Repeat("x", 60<<10)),
			result: func() string { return "the service's answer" }},
		row{tried: "metadata of 65 KiB", want: []error{coded(codes.Internal)}, try: put(follower, &kvpb.PutRequest{}, "x", strings.Repeat("x", 65<<10))},
		row{tried: "metadata that the follower accepts, and with the hop's is too much for the leader", want: []error{coded(codes.Internal)},
			try: put(follower, &kvpb.PutRequest{}, "x", strings.Repeat("x", 65200))},
		row{tried: "a message of 4 MiB and some bytes, at the leader", want: []error{coded(codes.ResourceExhausted)}, try: put(leader, large)},
		row{tried: "the same, at a follower", want: []error{coded(codes.ResourceExhausted)}, try: put(follower, large)},
		row{tried: "a method that is not registered", want: []error{coded(codes.Unimplemented)}, try: func() error {
			return answer(follower.conn.Invoke(s.Ctx, "/orders.Nothing/Nothing", &kvpb.PutRequest{}, &kvpb.PutResponse{}))
		}},
		row{tried: "two messages for a unary method", want: []error{coded(codes.Internal)}, try: func() error {
			stream, err := follower.conn.NewStream(s.Ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, kvpb.KV_Put_FullMethodName)
			if err != nil {
				return err
			}
			for range 2 {
				_ = stream.SendMsg(&kvpb.PutRequest{}) // the answer contains the error
			}
			_ = stream.CloseSend()
			return answer(stream.RecvMsg(&kvpb.PutResponse{}))
		}},
		row{tried: "no message for a unary method", want: []error{coded(codes.Internal)}, try: func() error {
			stream, err := follower.conn.NewStream(s.Ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, kvpb.KV_Put_FullMethodName)
			if err != nil {
				return err
			}
			_ = stream.CloseSend()
			return answer(stream.RecvMsg(&kvpb.PutResponse{}))
		}},
	)
	return to
}
