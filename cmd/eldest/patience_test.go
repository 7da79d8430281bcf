package main

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"

	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/lease"
)

// answering is a client's parts, whose every answer is err.
type answering struct {
	clientv3.Lease
	clientv3.KV
	clientv3.Txn
	err *error
}

func (a answering) Grant(context.Context, int64) (*clientv3.LeaseGrantResponse, error) {
	return nil, *a.err
}

func (a answering) Then(...clientv3.Op) clientv3.Txn { return a }
func (a answering) Else(...clientv3.Op) clientv3.Txn { return a }
func (a answering) If(...clientv3.Cmp) clientv3.Txn  { return a }

func (a answering) Commit() (*clientv3.TxnResponse, error) { return nil, *a.err }

type answeringKV struct{ answering }

func (kv answeringKV) Txn(context.Context) clientv3.Txn { return kv.answering }

func (kv answeringKV) Do(context.Context, clientv3.Op) (clientv3.OpResponse, error) {
	return clientv3.OpResponse{}, *kv.err
}

// Whatever a session or a candidate asks again for, it is told why; what ends the command, or
// is not the candidate's, is not.
func TestWaitingIsTold(t *testing.T) {
	own, other := keys.Candidate("svc", 1), "svc-data"
	grant := func(c *clientv3.Client) { _, _ = c.Grant(context.Background(), 1) }
	read := func(key string) func(*clientv3.Client) {
		return func(c *clientv3.Client) { _, _ = c.Do(context.Background(), clientv3.OpGet(key)) }
	}
	write := func(key string) func(*clientv3.Client) {
		return func(c *clientv3.Client) {
			_, _ = c.Txn(context.Background()).If().Then(clientv3.OpPut(key, "")).Else(clientv3.OpGet(own)).Commit()
		}
	}
	refusals := map[string]error{
		"corrupt":       rpctypes.ErrCorrupt,
		"dropped":       errors.New("raft proposal dropped"),
		"internal":      status.Error(codes.Internal, "stream terminated"),
		"busy":          rpctypes.ErrTooManyRequests,
		"cancelled":     status.Error(codes.Canceled, "by a proxy"),
		"not permitted": rpctypes.ErrPermissionDenied,
		"no room":       rpctypes.ErrNoSpace,
		"unavailable":   status.Error(codes.Unavailable, "connection refused"),
		"silent":        context.DeadlineExceeded,
		"ending":        context.Canceled,
	}
	const atOnce, later, never = 0, connect.Passing, -1
	// Nobody asks again after these.
	final := map[string]bool{"not permitted": true, "no room": true}
	for _, tc := range []struct {
		what string
		ask  func(*clientv3.Client)
		when map[string]time.Duration
	}{
		{"grant", grant, map[string]time.Duration{"corrupt": later, "dropped": later, "internal": later, "busy": later, "cancelled": later, "unavailable": atOnce, "silent": atOnce}},
		{"write", write(own), map[string]time.Duration{"corrupt": later, "dropped": later, "internal": later, "busy": later, "cancelled": later, "unavailable": atOnce, "silent": atOnce}},
		// Of silence the session tells.
		{"read", read(own), map[string]time.Duration{"corrupt": later, "dropped": later, "internal": later, "busy": later, "cancelled": later}},
		{"write of another key", write(other), nil},
		{"read of another key", read(other), nil},
	} {
		for refusal, err := range refusals {
			t.Run(tc.what+"/"+refusal, func(t *testing.T) {
				want, told := tc.when[refusal]
				if !told {
					want = never
				}
				attempts := 100
				if final[refusal] {
					attempts = 1
				}
				synctest.Test(t, func(t *testing.T) { waitingIsTold(t, tc.ask, err, want, attempts) })
			})
		}
	}
}

// waitingIsTold asks again and again while the answer is err, and once more when it is none.
func waitingIsTold(t *testing.T, ask func(*clientv3.Client), err error, want time.Duration, attempts int) {
	var lines []string
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	w := &connect.Notice{To: cmd, Conn: &connect.Flags{Endpoints: []string{"h:1"}}, Say: func(line string) { lines = append(lines, line) }}
	answer := err
	client := &clientv3.Client{Lease: answering{err: &answer}, KV: answeringKV{answering{err: &answer}}}
	w.Listen(client, "svc")
	began := time.Now()
	for time.Since(began) < want {
		require.Empty(t, lines, "most is over at once")
		ask(client)
		time.Sleep(100 * time.Millisecond)
	}
	for range attempts {
		ask(client)
		time.Sleep(100 * time.Millisecond)
	}
	if want < 0 {
		require.Empty(t, lines)
		return
	}
	require.Len(t, lines, 1, "and not at each attempt")
	require.Contains(t, lines[0], "etcd at h:1")
	require.Contains(t, lines[0], connect.Because(err))
	require.Equal(t, want == 0, strings.Contains(lines[0], "waiting for etcd"), lines[0])
	answer = nil
	ask(client)
	ask(client)
	require.Equal(t, []string{"etcd answers"}, lines[1:])
	answer = err
	ask(client)
	require.Equal(t, want == 0, len(lines) == 3, "it begins anew")
}

// A command that was told to end waits for nothing more.
func TestNothingIsToldOfTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cmd := &cobra.Command{}
	cmd.SetContext(ctx)
	w := &connect.Notice{To: cmd, Conn: &connect.Flags{}, Say: func(line string) { t.Error(line) }}
	cancel()
	w.Answered(time.Now(), context.DeadlineExceeded)
}

// alarm raises or ends the alarm by which etcd answers and does nothing.
func (e *etcd) alarm(action pb.AlarmRequest_AlarmAction) {
	e.t.Helper()
	_, err := pb.NewMaintenanceClient(e.client.ActiveConnection()).Alarm(e.bounded(), &pb.AlarmRequest{
		Action: action, MemberID: e.Member(0).ID(), Alarm: pb.AlarmType_CORRUPT,
	})
	require.NoError(e.t, err)
}

// An etcd that answers and refuses is told of within seconds, by all who wait for it.
//
// Fails when only silence is told.
func TestCorruptEtcdIsToldOf(t *testing.T) {
	t.Parallel()
	etcd := own(t)
	etcd.alarm(pb.AlarmRequest_ACTIVATE)
	all := []*clitest.Process{
		etcd.start("campaign", "svc", "--ttl", "30s"),
		etcd.start("service", "node", "shop", "n1", "--ttl", "30s"),
	}
	for _, p := range all {
		p.Says("answers, but refuses for now (etcdserver: corrupt cluster)")
		require.NotContains(t, p.Errors(), "waiting for etcd")
	}
	etcd.alarm(pb.AlarmRequest_DEACTIVATE)
	for _, p := range all {
		p.Says("etcd answers")
		for line := ""; !strings.Contains(line, "lead"); {
			line = p.Line()
		}
		p.Signal(syscall.SIGTERM)
		p.Ends(cli.ExitOK)
	}
	require.Zero(t, etcd.leases())
}

// between puts a server before etcd that asks decide before each call; its error is the
// answer, nil is etcd's. Messages are passed on as what none of their fields is known of.
func between(t *testing.T, etcd *etcd, decide func(ctx context.Context, method string) error) (endpoint string) {
	t.Helper()
	conn, err := grpc.NewClient(strings.TrimPrefix(etcd.endpoint, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, client grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(client)
		if err := decide(client.Context(), method); err != nil {
			return err
		}
		asked, _ := metadata.FromIncomingContext(client.Context())
		ctx := metadata.NewOutgoingContext(client.Context(), metadata.Pairs(rpctypes.MetadataRequireLeaderKey, strings.Join(asked.Get(rpctypes.MetadataRequireLeaderKey), "")))
		etcd, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
		if err != nil {
			return err
		}
		go func() {
			var m emptypb.Empty
			for client.RecvMsg(&m) == nil && etcd.SendMsg(&m) == nil {
			}
			_ = etcd.CloseSend()
		}()
		for {
			var m emptypb.Empty
			if err := etcd.RecvMsg(&m); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			if err := client.SendMsg(&m); err != nil {
				return err
			}
		}
	}))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		_ = conn.Close()
	})
	return listener.Addr().String()
}

// A place in the queue that is asked for and not given is told of, though the lease is there
// and its renewals go on.
//
// Fails when only the grant of the lease is listened to.
func TestRegistrationThatIsNotAnsweredIsToldOf(t *testing.T) {
	t.Parallel()
	etcd := borrowed(t)
	var silence atomic.Bool
	silence.Store(true)
	endpoint := between(t, etcd, func(ctx context.Context, method string) error {
		if method == "/etcdserverpb.KV/Txn" && silence.Load() {
			<-ctx.Done()
		}
		return ctx.Err()
	})
	all := []*clitest.Process{
		etcd.start("campaign", "svc", "--ttl", "30s", "--endpoints", endpoint),
		etcd.start("run", "jobs", "--ttl", "30s", "--endpoints", endpoint, "--", "sleep", "1000"),
		etcd.start("service", "node", "shop", "n1", "--ttl", "30s", "--endpoints", endpoint),
	}
	for _, p := range all {
		p.Says("waiting for etcd at " + endpoint + " (context deadline exceeded)")
	}
	require.Equal(t, len(all), etcd.leases(), "the leases were granted")
	silence.Store(false)
	for _, p := range all {
		p.Says("etcd answers")
		p.Signal(syscall.SIGTERM)
		p.Ends(cli.ExitOK)
	}
	require.Zero(t, etcd.leases())
}

// The library wakes a client whose connections are gone, and can only if it is handed the
// client itself: left alone, gRPC's pauses outlast most leases.
//
// Fails when the session gets a part of the client, or a wrapper.
func TestCampaignReconnects(t *testing.T) {
	t.Parallel()
	etcd := later(t)
	away := etcd.endpoint
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{away}, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: time.Hour, Multiplier: 1, MaxDelay: time.Hour}, MinConnectTimeout: time.Second,
		})},
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	var said clitest.Sheet
	cmd := &cobra.Command{Use: "fake"}
	cmd.SetContext(t.Context())
	cmd.SetErr(&said)
	c := &campaign{standFlags: &standFlags{conn: &connect.Flags{Endpoints: []string{away}}, ttl: 30 * time.Second}, cmd: cmd, name: "svc"}
	(&connect.Notice{To: cmd, Conn: c.conn, Say: cli.ToStderr(cmd)}).Listen(client, c.name)

	opened := make(chan *lease.Session, 1)
	go func() {
		session, err := c.open(bounded(t), client, nil, lease.Hooks{})
		assert.NoError(t, err)
		opened <- session
	}()
	require.Eventually(t, func() bool { return strings.Contains(said.String(), "waiting for etcd at "+away) }, patience, time.Millisecond)
	etcd.restart()
	session := <-opened
	require.NotNil(t, session)
	require.NoError(t, session.Close(bounded(t)))
	require.Contains(t, said.String(), "etcd answers")
}
