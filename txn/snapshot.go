package txn

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/view"
	"github.com/eldest-io/eldest/keys"
)

// Snapshot is a whole election as of one linearizable read.
type Snapshot struct {
	// Revision is the etcd revision of the read.
	Revision int64
	// Queue are the candidates, oldest first, with their values.
	Queue []eldest.Candidate
	// Foreign are keys in the election's range that are not candidates.
	Foreign []string
}

// ReadSnapshot reads an election's queue with all values. It sends one request, for which the
// server scans the queue.
func ReadSnapshot(ctx context.Context, kv clientv3.KV, election string) (Snapshot, error) {
	begin, end := keys.Range(election)
	resp, err := kv.Get(ctx, begin, clientv3.WithRange(end), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	if err != nil {
		return Snapshot{}, err
	}
	line := Snapshot{Revision: resp.Header.Revision}
	line.Queue, line.Foreign = view.Queue(election, resp.Kvs)
	return line, nil
}
