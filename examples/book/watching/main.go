// Command watching is the program of chapter 6: a watch is put in place first, and the key is read
// after that; and a watch can end without having reported anything.
package main

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/examples/book/wire"
)

func main() { wire.Main(run) }

func run(ctx context.Context) {
	waiter := wire.Connect("waiter")
	defer waiter.Hangup()
	others := wire.Connect("others")
	defer others.Hangup()
	wire.Must(others.Put(ctx, "book/predecessor", "1"))

	// Right: the watch from now on, confirmed when it is in place, for deletions only, and only
	// from a member that has a leader; then one read of the key.
	leader := clientv3.WithRequireLeader(ctx)
	watched := waiter.Watch(leader, "book/predecessor", clientv3.WithCreatedNotify(), clientv3.WithFilterPut())
	created := wire.Must(wire.Next(ctx, watched))
	fmt.Println("the watch is in place at revision", created.Header.Revision)
	look := wire.Must(waiter.Get(ctx, "book/predecessor", clientv3.WithKeysOnly()))
	fmt.Printf("after that, at revision %d, the key exists: %t\n", look.Header.Revision, look.Count == 1)
	wire.Must(others.Put(ctx, "book/predecessor", "2"))
	wire.Must(others.Delete(ctx, "book/predecessor"))
	event := wire.Must(wire.Next(ctx, watched))
	fmt.Printf("a change of the value is not reported; the first event is a %v at revision %d\n", event.Events[0].Type, event.Events[0].Kv.ModRevision)

	// Wrong: the key has been deleted already, and it is not read. This watch would never receive
	// an event; here it receives one because the key is created again.
	late := waiter.Watch(leader, "book/predecessor", clientv3.WithCreatedNotify())
	wire.Must(wire.Next(ctx, late))
	wire.Must(others.Put(ctx, "book/predecessor", "another life"))
	first := wire.Must(wire.Next(ctx, late))
	fmt.Printf("a watch that began too late receives a %v, and never the deletion\n", first.Events[0].Type)

	// A watch from the past receives all events that it missed, unless they have been compacted
	// away.
	past := waiter.Watch(leader, "book/predecessor", clientv3.WithRev(event.Header.Revision), clientv3.WithFilterPut())
	missed := wire.Must(wire.Next(ctx, past))
	fmt.Printf("one that starts at revision %d receives the %v\n", event.Header.Revision, missed.Events[0].Type)
	wire.Must(others.Compact(ctx, first.Header.Revision))
	compacted := waiter.Watch(leader, "book/predecessor", clientv3.WithRev(event.Header.Revision))
	ended, err := wire.Next(ctx, compacted)
	fmt.Printf("one from before the compaction ends at once, compacted at %d: %v\n", ended.CompactRevision, err)

	// The watches that are still open receive the deletion at the end.
	wire.Must(others.Delete(ctx, "book/predecessor"))
	for _, open := range []clientv3.WatchChan{watched, late, past} {
		wire.Must(wire.Next(ctx, open))
	}
}
