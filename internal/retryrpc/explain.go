package retryrpc

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/internal/rpcerr"
)

const (
	// broken is gRPC's name for the state of a client that cannot connect to any of its endpoints.
	// (Its constant is in a package that is not needed otherwise.)
	broken = "TRANSIENT_FAILURE"
	// explaining bounds the request that gets the reason.
	explaining = 10 * time.Millisecond
)

// explained adds to the error of a request why the client has no connection, such as a certificate
// that was not accepted. Requests of etcd's client wait for a connection until their time-out, and
// then return only that. A request on gRPC's own connection does not wait, and fails with the
// reason; if there is a connection by now, the request changes nothing. Errors of an etcd that
// answered, and those of other clients, are returned as they are.
func explained(ctx context.Context, client any, err error) error {
	c, ok := client.(*clientv3.Client)
	if code := rpcerr.Code(err); !ok || c == nil || code != codes.DeadlineExceeded && code != codes.Unavailable {
		return err
	}
	conn := c.ActiveConnection()
	if conn == nil || conn.GetState().String() != broken {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, explaining)
	defer cancel()
	_, failure := etcdserverpb.NewMaintenanceClient(conn).Status(ctx, &etcdserverpb.StatusRequest{})
	if status.Code(failure) != codes.Unavailable {
		return err
	}
	cause, _ := strings.CutPrefix(status.Convert(failure).Message(), "connection error: desc = ")
	if text, unquoted := strconv.Unquote(cause); unquoted == nil {
		cause = text
	}
	return fmt.Errorf("%w: %s", err, cause)
}
