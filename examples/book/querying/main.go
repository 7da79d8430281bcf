// Command querying is the program of chapter 5: the requests with which the protocol reads, what
// they cost, and what a response may leave out.
package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/examples/book/wire"
	"github.com/eldest-io/eldest/keys"
)

func main() { wire.Main(run) }

func run(ctx context.Context) {
	client := wire.Connect("client")
	defer client.Hangup()

	// A queue of four, made by hand. The keys contain lease IDs, so their alphabetical order is not
	// the order in which they came; the order of the create revisions is.
	names := map[string]string{}
	var line []string
	var tokens []int64
	for _, name := range []string{"anna", "bert", "carl", "dora"} {
		granted := wire.Must(client.Grant(ctx, 60))
		defer func() { _, _ = client.Revoke(ctx, granted.ID) }()
		key := keys.Candidate("book", int64(granted.ID))
		put := wire.Must(client.Put(ctx, key, name, clientv3.WithLease(granted.ID)))
		names[key], line, tokens = name, append(line, key), append(tokens, put.Header.Revision)
	}
	begin, end := keys.Range("book")
	fmt.Printf("the range of the election is [%q, %q)\n", begin, end)

	// Dora's predecessor is the newest of the candidates that are older.
	older := wire.Must(client.Get(ctx, begin, clientv3.WithRange(end), clientv3.WithMaxCreateRev(tokens[3]-1),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend), clientv3.WithLimit(1), clientv3.WithKeysOnly()))
	kv := older.Kvs[0]
	fmt.Printf("%s is dora's predecessor; the response has lease %d, because it has keys only\n", names[string(kv.Key)], kv.Lease)
	lease := wire.Must(keys.Parse("book", string(kv.Key)))
	fmt.Println("the key itself names the lease:", strings.HasSuffix(string(kv.Key), fmt.Sprintf("%x", lease)))

	// Dora keeps the keys that she has read. Later they are enough: no new candidate can be older.
	wire.Must(client.Delete(ctx, line[2]))         // carl
	gone := wire.Must(client.Delete(ctx, line[0])) // anna
	var asked []clientv3.Op
	for _, i := range []int{3, 2, 1, 0} {
		asked = append(asked, clientv3.OpGet(line[i], clientv3.WithKeysOnly(), clientv3.WithRev(gone.Header.Revision), clientv3.WithSerializable()))
	}
	answer := wire.Must(client.Txn(ctx).Then(asked...).Commit())
	for i, who := range []string{"dora", "carl", "bert", "anna"} {
		fmt.Printf("at revision %d %s is a candidate: %t\n", gone.Header.Revision, who, answer.Responses[i].GetResponseRange().Count == 1)
	}

	// Past revisions can be read as well, as long as they have not been compacted away.
	before := wire.Must(client.Get(ctx, line[0], clientv3.WithRev(gone.Header.Revision-1)))
	fmt.Printf("one revision before there was %s\n", before.Kvs[0].Value)
	_, err := client.Get(ctx, line[3], clientv3.WithRev(gone.Header.Revision+1), clientv3.WithSerializable())
	fmt.Println("a future revision cannot be read:", errors.Is(err, rpctypes.ErrFutureRev))
	wire.Must(client.Compact(ctx, gone.Header.Revision))
	_, err = client.Get(ctx, line[0], clientv3.WithRev(gone.Header.Revision-1))
	fmt.Println("a compacted revision cannot be read either:", errors.Is(err, rpctypes.ErrCompacted))
}
