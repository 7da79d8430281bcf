package service

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

const nobodyListens = `connection error: desc = "transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused"`

func TestWhatAnErrorSays(t *testing.T) {
	refused := status.Error(codes.Unavailable, nobodyListens)
	for name, c := range map[string]struct {
		method           Method
		err              error
		sent             bool
		outcome          Outcome
		missing, notSent bool
	}{
		"done":                          {Put, nil, true, Done, false, false},
		"nobody listens":                {Put, refused, false, Refused, false, true},
		"another node says that":        {Put, refused, true, Open, false, false},
		"the connection breaks":         {Put, status.Error(codes.Unavailable, "error reading from server: EOF"), false, Open, false, false},
		"no connection, another reason": {Put, status.Error(codes.Unavailable, `connection error: desc = "transport: Error while dialing: i/o timeout"`), false, Open, false, false},
		"time was over":                 {Put, status.Error(codes.DeadlineExceeded, nobodyListens), false, Open, false, false},
		"a read is never open":          {Get, status.Error(codes.DeadlineExceeded, ""), true, Failed, false, false},
		"a read is not sent":            {Get, refused, false, Failed, false, true},
		"a read finds nothing":          {Get, status.Error(codes.NotFound, ""), true, Done, true, false},
		"a delete finds nothing":        {Delete, status.Error(codes.NotFound, ""), true, Refused, true, false},
		"a put cannot find nothing":     {Put, status.Error(codes.NotFound, ""), true, Refused, false, false},
		"no status":                     {Put, errors.New("what"), true, Open, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := Attempt{Method: c.method}
			a.Ended(nil, c.err, c.sent)
			require.Equal(t, c.outcome, a.Outcome)
			require.Equal(t, c.missing, a.Missing)
			require.Equal(t, c.notSent, a.NotSent)
		})
	}
}

// What gRPC says of a port at which nobody listens, and of one that takes connections
// and ends them.
func TestNotSentIsRecognized(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	c := newClient(nil, nil)
	defer c.close()
	a := Attempt{Method: Put, ID: "r", Key: "k"}
	c.try(conn, &a, 10*time.Second)
	require.Equal(t, Open, a.Outcome, a.Text)
	require.False(t, a.NotSent)

	require.NoError(t, l.Close())
	require.Eventually(t, func() bool {
		a = Attempt{Method: Put, ID: "r", Key: "k"}
		c.try(conn, &a, 10*time.Second)
		return a.NotSent
	}, time.Minute, time.Millisecond, "the last: %s", &a.Text)
	require.Equal(t, Refused, a.Outcome)
}
