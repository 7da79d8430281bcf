package watch_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/internal/rpcerr"
	"github.com/eldest-io/eldest/internal/watch"
)

// A watch that this package cancels ends as etcd's client ends one, with the error of the caller.
//
// Fails with a version of etcd's client that changes the error or repeats the request.
func TestCanceled(t *testing.T) {
	for name, reason := range map[string]error{
		"plain":       errors.New("enough"),
		"unavailable": status.Error(codes.Unavailable, "try again"), // etcd's client would
		"wrapped":     fmt.Errorf("lost: %w", status.Error(codes.Internal, "try again")),
	} {
		t.Run(name, func(t *testing.T) {
			err := &eldest.OpError{Op: "x", Election: "e", Err: rpcerr.Opaque(reason)}
			resp := etcdtest.Take(t, etcdtest.Go(func() error {
				resp := watch.Canceled(err)
				if !resp.Canceled || len(resp.Events) > 0 || resp.CompactRevision != 0 {
					return fmt.Errorf("it does not look canceled: %+v", resp)
				}
				return resp.Err()
			}), "the response")
			require.ErrorIs(t, resp, reason)
			require.Same(t, err, resp)
		})
	}
}
