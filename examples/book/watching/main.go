// Command watching is the program of chapter 6: a watch is put in place first, and what is
// there is read after that; and a watch can end without having told anything.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/examples/book/wire"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	err := run(ctx)
	cancel()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	waiter, err := wire.Connect("waiter")
	if err != nil {
		return err
	}
	defer waiter.Hangup()
	others, err := wire.Connect("others")
	if err != nil {
		return err
	}
	defer others.Hangup()
	if _, err := others.Put(ctx, "book/predecessor", "1"); err != nil {
		return err
	}

	// Right: the watch from now on, told when it is in place, deletions only, and only from a
	// member that has a leader; then one look at the key.
	leader := clientv3.WithRequireLeader(ctx)
	watched := waiter.Watch(leader, "book/predecessor", clientv3.WithCreatedNotify(), clientv3.WithFilterPut())
	created, err := next(ctx, watched)
	if err != nil {
		return err
	}
	fmt.Println("the watch is in place at revision", created.Header.Revision)
	look, err := waiter.Get(ctx, "book/predecessor", clientv3.WithKeysOnly())
	if err != nil {
		return err
	}
	fmt.Printf("after that, at revision %d, the key is there: %t\n", look.Header.Revision, look.Count == 1)
	if _, err := others.Put(ctx, "book/predecessor", "2"); err != nil {
		return err
	}
	if _, err := others.Delete(ctx, "book/predecessor"); err != nil {
		return err
	}
	event, err := next(ctx, watched)
	if err != nil {
		return err
	}
	fmt.Printf("a change of the value is not told; the first event is a %v at revision %d\n", event.Events[0].Type, event.Events[0].Kv.ModRevision)

	// Wrong: the key is gone already, and there is no look. This watch would say nothing for
	// ever; here it says something because the key comes back.
	late := waiter.Watch(leader, "book/predecessor", clientv3.WithCreatedNotify())
	if _, err := next(ctx, late); err != nil {
		return err
	}
	if _, err := others.Put(ctx, "book/predecessor", "another life"); err != nil {
		return err
	}
	first, err := next(ctx, late)
	if err != nil {
		return err
	}
	fmt.Printf("a watch that began too late is told of a %v, and never of the deletion\n", first.Events[0].Type)

	// A watch from the past is told all that it missed, unless that has been compacted away.
	past := waiter.Watch(leader, "book/predecessor", clientv3.WithRev(event.Header.Revision), clientv3.WithFilterPut())
	missed, err := next(ctx, past)
	if err != nil {
		return err
	}
	fmt.Printf("one that starts at revision %d is told of the %v\n", event.Header.Revision, missed.Events[0].Type)
	if _, err := others.Compact(ctx, first.Header.Revision); err != nil {
		return err
	}
	compacted := waiter.Watch(leader, "book/predecessor", clientv3.WithRev(event.Header.Revision))
	ended, err := next(ctx, compacted)
	fmt.Printf("one from before the compaction ends at once, compacted at %d: %v\n", ended.CompactRevision, err)

	// What is deleted at the end is told to whoever still watches.
	if _, err := others.Delete(ctx, "book/predecessor"); err != nil {
		return err
	}
	for _, open := range []clientv3.WatchChan{watched, late, past} {
		if _, err := next(ctx, open); err != nil {
			return err
		}
	}
	return nil
}

// next returns the next message of a watch; a watch that ended is an error.
func next(ctx context.Context, watched clientv3.WatchChan) (clientv3.WatchResponse, error) {
	select {
	case resp, ok := <-watched:
		if !ok {
			return resp, errors.New("the watch ended without a word")
		}
		return resp, resp.Err()
	case <-ctx.Done():
		return clientv3.WatchResponse{}, ctx.Err()
	}
}
