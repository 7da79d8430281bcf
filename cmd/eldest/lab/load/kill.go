package load

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// kill ends one member after the other with SIGKILL and brings it back with its data,
// until ctx ends. Whoever is down then comes back.
func (r *run) kill(ctx context.Context) {
	for n := range beats(ctx, r.scale.KillEvery) {
		member := r.cluster.Member(n % r.cluster.Size())
		short, cancel := context.WithTimeout(ctx, time.Second)
		if leader, err := r.cluster.Leader(short); err == nil && leader == member.Index {
			r.book.count("members killed that led etcd")
		}
		cancel()
		if err := member.Kill(); err != nil {
			r.book.violation("the harness: a member cannot be killed: %v", err)
			return
		}
		r.book.count("members killed")
		select {
		case <-time.After(time.Duration(r.scale.DownFor)):
		case <-ctx.Done():
		}
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.scale.patience())
		err := member.Restart(back)
		cancel()
		if err != nil {
			r.book.late("the harness: a member does not come back: %v", err)
			return
		}
		r.book.count("members that came back")
	}
}

// compact has etcd forget its history up to what it was one round ago, as its own
// automatic compaction does, until ctx ends. Without it the members would grow, and with
// one up to the present every watch would break.
func (r *run) compact(ctx context.Context) {
	last := r.revision(ctx)
	for range beats(ctx, r.scale.KillEvery) {
		now := r.revision(ctx)
		if last > 0 && now > 0 {
			short, cancel := context.WithTimeout(ctx, 10*time.Second)
			if _, err := r.admin.Compact(short, last); err == nil {
				r.book.count("compactions")
			}
			cancel()
		}
		last = max(last, now)
	}
}

// revision is etcd's at this moment, 0 where it does not answer.
func (r *run) revision(ctx context.Context) int64 {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	now, err := r.admin.Get(ctx, candidates, clientv3.WithCountOnly())
	if err != nil {
		return 0
	}
	return now.Header.Revision
}
