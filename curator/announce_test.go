package curator

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/curator/curatorpb"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

const (
	roleUnknown   = curatorpb.CurrentLeaderResponse_ROLE_UNKNOWN
	roleLeading   = curatorpb.CurrentLeaderResponse_ROLE_LEADING
	roleFollowing = curatorpb.CurrentLeaderResponse_ROLE_FOLLOWING
)

// leaders reads a stream and holds each answer against what any answer must be.
type leaders struct {
	t      testing.TB
	stream grpc.ServerStreamingClient[curatorpb.CurrentLeaderResponse]
	token  int64
	last   *curatorpb.CurrentLeaderResponse
}

func (l *leaders) next() *curatorpb.CurrentLeaderResponse {
	l.t.Helper()
	r, err := l.stream.Recv()
	require.NoError(l.t, err)
	require.NotEmpty(l.t, r.GetElection())
	require.NotEmpty(l.t, r.GetThisNodeId())
	require.Len(l.t, r.GetThisInstanceId(), 16)
	if r.GetRole() == roleUnknown {
		require.NotEmpty(l.t, r.GetReason())
		require.Empty(l.t, r.GetLeaderNodeId()+r.GetLeaderAddress()+r.GetLeaderInstanceId())
		require.Zero(l.t, r.GetToken())
	} else {
		require.Empty(l.t, r.GetReason())
		require.NotEmpty(l.t, r.GetLeaderNodeId())
		require.GreaterOrEqual(l.t, r.GetToken(), l.token, "tokens never go back (G6)")
		require.Equal(l.t, r.GetRole() == roleLeading, r.GetLeaderInstanceId() == r.GetThisInstanceId(), "never both, and nobody follows itself")
		l.token = r.GetToken()
	}
	l.last = r
	return r
}

// until reads up to an answer with a role.
func (l *leaders) until(role curatorpb.CurrentLeaderResponse_Role) *curatorpb.CurrentLeaderResponse {
	l.t.Helper()
	for l.next().GetRole() != role {
	}
	return l.last
}

// because reads up to an answer that says for that reason that nothing is known: a busy
// machine has other ones in between.
func (l *leaders) because(reason string) {
	l.t.Helper()
	for !strings.Contains(l.until(roleUnknown).GetReason(), reason) {
	}
}

// code reads up to the stream's end and returns how it ended.
func (l *leaders) code() codes.Code {
	l.t.Helper()
	for {
		if _, err := l.stream.Recv(); err != nil {
			return status.Code(err)
		}
	}
}

// Row 48: a node that knows nothing yet says so, at once.
func TestRequirement48AtOnce(t *testing.T) {
	p := newSpeaker(t, electionOf(t), "n1")
	l := p.ask(t, etcdtest.Context(t))
	r := l.next()
	require.Equal(t, roleUnknown, r.GetRole())
	require.Contains(t, r.GetReason(), "no Run is going on")
	require.Equal(t, p.cfg.Election, r.GetElection())
	require.Equal(t, "n1", r.GetThisNodeId())
	p.stand(t)
	_, token, ok := p.becomes(t, elector.Leading).Own()
	require.True(t, ok)
	r = l.until(roleLeading)
	require.Equal(t, int64(token), r.GetToken())
	require.Equal(t, []string{"n1", p.cfg.Address, p.Instance()}, []string{r.GetLeaderNodeId(), r.GetLeaderAddress(), r.GetLeaderInstanceId()})

	late := p.ask(t, etcdtest.Context(t))
	require.Equal(t, roleLeading, late.next().GetRole(), "the first answer is what is known already")
}

// Row 48: each node tells each change, and all of them tell the same leader.
func TestRequirement48EachChange(t *testing.T) {
	election := electionOf(t)
	// A stream skips what came and went: a comes back once it was heard that it had gone.
	rounds := make(chan struct{}, 1)
	rounds <- struct{}{}
	a, b := newSpeaker(t, election, "a", func(cfg *elector.Config) {
		source := cfg.Source
		cfg.Source = func(ctx context.Context) (elector.Clients, error) {
			select {
			case <-rounds:
				return source(ctx)
			case <-ctx.Done():
				return elector.Clients{}, context.Cause(ctx)
			}
		}
	}), newSpeaker(t, election, "b")
	a.stand(t)
	a.becomes(t, elector.Leading)
	stopB := b.stand(t)
	b.becomes(t, elector.Following)
	ofA, ofB := a.ask(t, etcdtest.Context(t)), b.ask(t, etcdtest.Context(t))
	first, seen := ofA.until(roleLeading), ofB.until(roleFollowing)
	for _, r := range []*curatorpb.CurrentLeaderResponse{first, seen} {
		require.Equal(t, []string{"a", a.cfg.Address, a.Instance()}, []string{r.GetLeaderNodeId(), r.GetLeaderAddress(), r.GetLeaderInstanceId()})
		require.Equal(t, first.GetToken(), r.GetToken())
	}

	a.depose(t)
	ofA.until(roleUnknown)
	rounds <- struct{}{}
	second := ofB.until(roleLeading)
	require.Greater(t, second.GetToken(), first.GetToken())
	seen = ofA.until(roleFollowing)
	require.Equal(t, []string{"b", b.cfg.Address, b.Instance()}, []string{seen.GetLeaderNodeId(), seen.GetLeaderAddress(), seen.GetLeaderInstanceId()})
	require.Equal(t, second.GetToken(), seen.GetToken())

	stopB()
	ofB.because("context canceled")
	require.Greater(t, ofA.until(roleLeading).GetToken(), second.GetToken())
}

// A leader that says nothing of an address leads all the same; one that cannot be read
// is unknown, with the reason, however strange (regression 27).
func TestCurrentLeaderStrangers(t *testing.T) {
	p := newSpeaker(t, electionOf(t), "n")
	token := p.stranger(t, []byte{0x0a, 2, 'n', '0', 0x10, 60})
	p.stand(t)
	l := p.ask(t, etcdtest.Context(t))
	r := l.until(roleFollowing)
	require.Equal(t, []string{"n0", "", ""}, []string{r.GetLeaderNodeId(), r.GetLeaderAddress(), r.GetLeaderInstanceId()})
	require.Equal(t, token, r.GetToken())
	p.stranger(t, []byte("\xff\xfe strange"))
	l.because("not one of ours")

	q := newSpeaker(t, electionOf(t), "n", func(cfg *elector.Config) { cfg.Codec = named{} })
	q.stranger(t, []byte("n\xff"))
	q.stand(t)
	require.Equal(t, "n\ufffd", q.ask(t, etcdtest.Context(t)).until(roleFollowing).GetLeaderNodeId(), "told, although it is no text")
}

// A stream ends with its caller, as the caller ended it, or with the node, and a
// server with streams can stop gracefully.
func TestCurrentLeaderEnds(t *testing.T) {
	p := newSpeaker(t, electionOf(t), "n")
	ctx, cancel := context.WithCancel(etcdtest.Context(t))
	cancelled := p.ask(t, ctx)
	cancelled.next()
	cancel()
	require.Equal(t, codes.Canceled, cancelled.code())
	short, err := curatorpb.NewCuratorClient(p.conn).CurrentLeader(etcdtest.ContextFor(t, 50*time.Millisecond), &curatorpb.CurrentLeaderRequest{})
	for err == nil { // also where it did not come to a stream in time
		_, err = short.Recv()
	}
	require.Equal(t, codes.DeadlineExceeded, status.Code(err))

	var streams []*leaders
	for range 20 {
		streams = append(streams, p.ask(t, etcdtest.Context(t)))
		streams[len(streams)-1].next()
	}
	p.stopping()
	stopped := make(chan struct{})
	go func() { p.server.GracefulStop(); close(stopped) }()
	select {
	case <-stopped:
	case <-time.After(etcdtest.Patience):
		require.Fail(t, "the server waits for its streams")
	}
	for _, l := range streams {
		require.Equal(t, codes.Unavailable, l.code())
	}
}

// A thousand callers, none of whom reads, hold up neither the node nor each other.
func TestCurrentLeaderManyCallers(t *testing.T) {
	election := electionOf(t)
	a, b := newSpeaker(t, election, "a"), newSpeaker(t, election, "b")
	a.stand(t)
	a.becomes(t, elector.Leading)
	b.stand(t)
	b.becomes(t, elector.Following)
	var all []*leaders
	for range 1000 {
		all = append(all, b.ask(t, etcdtest.ContextFor(t, 4*etcdtest.Patience))) // until all of them have been read
	}
	a.depose(t)
	b.becomes(t, elector.Leading)
	for _, l := range all {
		require.Equal(t, "b", l.until(roleLeading).GetLeaderNodeId())
	}
}
