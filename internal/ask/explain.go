package ask

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/eldest-io/eldest/internal/rpcerr"
)

const (
	// broken is gRPC's name for the state of a client none of whose endpoints can be
	// connected to. (Its constant is in a package that is not needed otherwise.)
	broken = "TRANSIENT_FAILURE"
	// beforeCause is what gRPC writes before the error of a connection, in the status of a
	// request that waited for one in vain.
	beforeCause = "latest balancer error: "
	// explaining is how long such a request waits.
	explaining = 10 * time.Millisecond
)

// explained adds to the error of a request why the client has no connection, such as a
// certificate that was not accepted: requests wait for a connection until their time is up,
// and etcd's client then returns nothing but that. It asks gRPC itself, with a request that
// changes nothing if there is a connection by now. Errors of an etcd that answered, and
// those of other clients, are returned as they are.
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
	_, waited := etcdserverpb.NewMaintenanceClient(conn).Status(ctx, &etcdserverpb.StatusRequest{})
	if _, cause, found := strings.Cut(status.Convert(waited).Message(), beforeCause); found {
		return fmt.Errorf("%w: %s", err, cause)
	}
	return err
}
