package rpcerr_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/internal/rpcerr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// verdicts are the classifications that other packages rely on, error by error, in the form in
// which the client returns them.
var verdicts = map[string]struct {
	err                 error
	permanent, definite bool
}{
	"nil":                                 {nil, false, false},
	"unknown":                             {errors.New("what is this"), false, false},
	"time-out of the call":                {context.DeadlineExceeded, false, false},
	"cancelled, but not by the caller":    {context.Canceled, false, false},
	"closed client":                       {status.Error(codes.Canceled, "grpc: the client connection is closing"), false, false},
	"connection refused":                  {status.Error(codes.Unavailable, "connection refused"), false, false},
	"reset":                               {status.Error(codes.Unavailable, "error reading from server: EOF"), false, false},
	"internal":                            {status.Error(codes.Internal, "stream terminated"), false, false},
	"aborted":                             {status.Error(codes.Aborted, "?"), false, false},
	"data loss":                           {rpctypes.ErrCorrupt, false, false},
	"too many requests":                   {rpctypes.ErrTooManyRequests, false, true},
	"no space":                            {rpctypes.ErrNoSpace, true, false},
	"no leader":                           {rpctypes.ErrNoLeader, false, true},
	"leader changed":                      {rpctypes.ErrLeaderChanged, false, false},
	"not leader":                          {rpctypes.ErrNotLeader, true, true},
	"a learner":                           {rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner), false, true},
	"a learner, not converted":            {rpctypes.ErrGRPCNotSupportedForLearner, false, true},
	"time-out at the server":              {rpctypes.ErrTimeout, false, false},
	"time-out, leader failed":             {rpctypes.ErrTimeoutDueToLeaderFail, false, false},
	"time-out, connection lost":           {rpctypes.ErrTimeoutDueToConnectionLost, false, false},
	"stopped":                             {rpctypes.ErrStopped, false, false},
	"unhealthy":                           {rpctypes.ErrUnhealthy, false, false},
	"permission":                          {rpctypes.ErrPermissionDenied, true, true},
	"token expired":                       {rpctypes.ErrInvalidAuthToken, false, true},
	"auth store changed":                  {rpctypes.ErrAuthOldRevision, false, true},
	"wrong password":                      {rpctypes.ErrAuthFailed, true, true},
	"lease not found":                     {rpctypes.ErrLeaseNotFound, true, true},
	"lease exists":                        {rpctypes.ErrLeaseExist, true, true},
	"TTL too large":                       {rpctypes.ErrLeaseTTLTooLarge, true, true},
	"compacted":                           {rpctypes.ErrCompacted, true, true},
	"future revision":                     {rpctypes.ErrFutureRev, true, true},
	"request too large for the server":    {rpctypes.ErrRequestTooLarge, true, true},
	"too many operations":                 {rpctypes.ErrTooManyOps, true, true},
	"duplicate key":                       {rpctypes.ErrDuplicateKey, true, true},
	"request too large for the client":    {status.Error(codes.ResourceExhausted, "trying to send message larger than max (3000000 vs. 2097152)"), true, true},
	"reply too large for the client":      {status.Error(codes.ResourceExhausted, "grpc: received message larger than max (5 vs. 4)"), false, false},
	"a proxy that limits":                 {status.Error(codes.ResourceExhausted, "slow down"), false, false},
	"a method that the server lacks":      {status.Error(codes.Unimplemented, "unknown service"), false, false},
	"a balancer's 403":                    {status.Error(codes.PermissionDenied, "unexpected HTTP status code received from server: 403 (Forbidden)"), false, false},
	"a balancer's 401":                    {status.Error(codes.Unauthenticated, "unexpected HTTP status code received from server: 401 (Unauthorized)"), false, false},
	"permission, not converted":           {rpctypes.ErrGRPCPermissionDenied, true, true},
	"a status that is OK is not an error": {status.Error(codes.OK, ""), false, false},
}

func TestVerdicts(t *testing.T) {
	for name, v := range verdicts {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, v.permanent, rpcerr.Permanent(v.err), "permanent")
			assert.Equal(t, v.definite, rpcerr.Definite(v.err), "definite")
			if v.err == nil {
				return
			}
			wrapped := fmt.Errorf("outer: %w", fmt.Errorf("inner: %w", v.err))
			assert.Equal(t, v.permanent, rpcerr.Permanent(wrapped), "permanent when wrapped")
			assert.Equal(t, v.definite, rpcerr.Definite(wrapped), "definite when wrapped")
			assert.Equal(t, rpcerr.Code(v.err), rpcerr.Code(wrapped))
		})
	}
}

// TestRefused: the source of the error does not matter.
func TestRefused(t *testing.T) {
	for _, code := range []codes.Code{codes.PermissionDenied, codes.Unimplemented, codes.Unauthenticated, codes.InvalidArgument, codes.ResourceExhausted} {
		require.True(t, rpcerr.Refused(status.Error(code, "by something")), "%v", code)
	}
	for _, code := range []codes.Code{codes.Unavailable, codes.Internal, codes.Unknown, codes.DeadlineExceeded, codes.Canceled} {
		require.False(t, rpcerr.Refused(status.Error(code, "by something")), "%v", code)
	}
	for name, v := range verdicts {
		require.True(t, rpcerr.Refused(v.err) || !v.permanent, name)
	}
}

// TestBothForms: the client converts the server's errors in some places, and returns the raw
// statuses in others.
func TestBothForms(t *testing.T) {
	for _, pair := range []struct{ raw, converted error }{
		{rpctypes.ErrGRPCLeaseNotFound, rpctypes.ErrLeaseNotFound},
		{rpctypes.ErrGRPCCompacted, rpctypes.ErrCompacted},
		{rpctypes.ErrGRPCFutureRev, rpctypes.ErrFutureRev},
		{rpctypes.ErrGRPCRequestTooManyRequests, rpctypes.ErrTooManyRequests},
		{rpctypes.ErrGRPCNoLeader, rpctypes.ErrNoLeader},
		{rpctypes.ErrGRPCPermissionDenied, rpctypes.ErrPermissionDenied},
		{rpctypes.ErrGRPCInvalidAuthToken, rpctypes.ErrInvalidAuthToken},
	} {
		for _, err := range []error{pair.raw, pair.converted, fmt.Errorf("w: %w", pair.raw), fmt.Errorf("w: %w", pair.converted)} {
			assert.True(t, rpcerr.Is(err, pair.converted), "%v", err)
			assert.Equal(t, rpcerr.Code(pair.converted), rpcerr.Code(err), "%v", err)
			assert.Equal(t, rpcerr.Permanent(pair.converted), rpcerr.Permanent(err), "%v", err)
			assert.Equal(t, rpcerr.Definite(pair.converted), rpcerr.Definite(err), "%v", err)
		}
		assert.False(t, rpcerr.Is(pair.raw, rpctypes.ErrStopped))
	}
	assert.False(t, rpcerr.Is(nil, rpctypes.ErrStopped))
	assert.False(t, rpcerr.Is(errors.New("x"), rpctypes.ErrStopped))
	assert.True(t, rpcerr.Compacted(rpctypes.ErrGRPCCompacted))
	assert.False(t, rpcerr.Compacted(rpctypes.ErrGRPCFutureRev))
	assert.True(t, rpcerr.Future(rpctypes.ErrGRPCFutureRev))
	assert.False(t, rpcerr.Future(nil))
}

// TestOwnCancellation: a cancellation that the caller's context explains does not mean that the
// client was closed.
func TestOwnCancellation(t *testing.T) {
	dead, cancel := context.WithCancel(context.Background())
	cancel()
	alive := client(context.Background)
	closed := client(func() context.Context { return dead })
	for _, err := range []error{context.Canceled, status.Error(codes.Canceled, "context canceled"), status.FromContextError(context.Canceled).Err()} {
		require.False(t, rpcerr.Permanent(err))
		require.False(t, rpcerr.ClientClosed(dead, nil, err))
		require.True(t, rpcerr.ClientClosed(context.Background(), nil, err))
		// A server or a proxy may cancel as well: if the client has a context, that decides.
		require.False(t, rpcerr.ClientClosed(context.Background(), alive, err))
		require.True(t, rpcerr.ClientClosed(context.Background(), closed, err))
	}
	require.False(t, rpcerr.ClientClosed(context.Background(), nil, nil))
	require.False(t, rpcerr.ClientClosed(context.Background(), closed, nil))
	require.False(t, rpcerr.ClientClosed(context.Background(), nil, rpctypes.ErrLeaseNotFound))
}

// client is a client that has a context.
type client func() context.Context

func (c client) Ctx() context.Context { return c() }

func TestClosed(t *testing.T) {
	dead, cancel := context.WithCancel(context.Background())
	cancel()
	require.True(t, rpcerr.Closed(client(func() context.Context { return dead })))
	require.False(t, rpcerr.Closed(client(context.Background)))
	require.False(t, rpcerr.Closed(nil))
	require.False(t, rpcerr.Closed("what has no context"))
}

// TestRestore: the reason of a cancelled watch arrives as text.
func TestRestore(t *testing.T) {
	for _, known := range []struct{ raw, converted error }{
		{rpctypes.ErrGRPCPermissionDenied, rpctypes.ErrPermissionDenied},
		{rpctypes.ErrGRPCInvalidAuthToken, rpctypes.ErrInvalidAuthToken},
		{rpctypes.ErrGRPCNoLeader, rpctypes.ErrNoLeader},
	} {
		require.Equal(t, known.converted, rpcerr.Restore(errors.New(known.raw.Error())))
		require.Equal(t, known.converted, rpcerr.Restore(known.converted))
		require.Equal(t, known.raw, rpcerr.Restore(known.raw), "what can be read is left alone")
	}
	for _, err := range []error{nil, context.Canceled, errors.New("x"), errors.New("rpc error: code = Unknown desc = x"), errors.New(" desc = ")} {
		require.Equal(t, err, rpcerr.Restore(err))
	}
}
