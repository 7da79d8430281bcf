package contender

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// floor is what the cluster and the client cost without a protocol: one client deletes a key, and
// the watch of another client receives the deletion. Its win proves nothing, and its leaders write
// without any protection.
//
// On the wire: a registration, so that there is a key; one watch on the predecessor's; a delete.
// Between the delete and the event no request is sent.
var floor = raw{name: Floor, bare: true, wait: func(ctx context.Context, c *rawCandidate, ahead string) error {
	// Without a start revision: the server starts the watch at once, not at its next scan.
	for resp := range c.client.Watch(ctx, ahead, clientv3.WithCreatedNotify()) {
		switch {
		case resp.Err() != nil:
			return resp.Err()
		case resp.Created:
			// The key may have been deleted before the watch was created.
			before, err := c.client.Get(ctx, ahead, clientv3.WithCountOnly())
			if err != nil || before.Count == 0 {
				return err
			}
		case len(resp.Events) > 0 && resp.Events[0].Type == clientv3.EventTypeDelete:
			return nil
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errEnded
}}
