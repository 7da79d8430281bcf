package bench

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

var errRefereeGone = errors.New("the referee's watch has ended")

// referee sees an election as etcd sees it, by a watch of its own.
type referee struct {
	events clientv3.WatchChan
	keys   map[string]bool
	cancel context.CancelFunc
}

// watchOver sends a referee to an election in which nobody stands yet, and blocks until
// it is in place. It leaves with the turn.
func (t *turn) watchOver(ctx context.Context, election string) (*referee, error) {
	f, err := t.referee(ctx, election)
	if err != nil {
		return nil, err
	}
	t.after(func(context.Context) { f.cancel() })
	return f, nil
}

// referee is watchOver for one who stays until its cancel is called.
func (r *run) referee(ctx context.Context, election string) (*referee, error) {
	live, cancel := context.WithCancel(context.WithoutCancel(ctx))
	// The client's Watch blocks until the server has answered.
	defer context.AfterFunc(ctx, cancel)()
	f := &referee{keys: map[string]bool{}, cancel: cancel}
	f.events = r.judge.Watch(clientv3.WithRequireLeader(live), election+"/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	if err := f.next(ctx); err != nil {
		cancel()
		return nil, err
	}
	return f, nil
}

// queue blocks until n keys stand in the election.
func (f *referee) queue(ctx context.Context, n int) error {
	for len(f.keys) != n {
		if err := f.next(ctx); err != nil {
			return fmt.Errorf("waiting for %d candidates to stand (%d do): %w", n, len(f.keys), err)
		}
	}
	return nil
}

// next takes in what the watch brings next.
func (f *referee) next(ctx context.Context) error {
	select {
	case resp, ok := <-f.events:
		return f.note(resp, ok)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// note takes in one response of the watch.
func (f *referee) note(resp clientv3.WatchResponse, ok bool) error {
	switch {
	case !ok:
		return errRefereeGone
	case resp.Err() != nil:
		return resp.Err()
	}
	for _, e := range resp.Events {
		if e.Type == clientv3.EventTypeDelete {
			delete(f.keys, string(e.Kv.Key))
		} else {
			f.keys[string(e.Kv.Key)] = true
		}
	}
	return nil
}
