// Package fence takes leaders' tokens to stores outside etcd: a client sends its token with
// HTTP and gRPC requests, and a server refuses a token that is older than the newest one that
// it has received. In one election tokens grow from tenure to tenure (G2), so a request of an
// earlier leader is recognised however late it arrives, without any clock.
//
// # Not guaranteed
//
// A request that was admitted may write after a newer one. The check comes before the
// handler, and the handler writes later: the request of an older leader can be admitted, wait
// in the handler for a disk or a garbage collection while the request of the newer leader is
// admitted and writes, and then write over it. The check is exact only in the transaction that
// writes; see below. The check by itself guarantees this: after a newer token was admitted, no
// older one is.
//
// The fence learns of a tenure from its first request, not when it is won. Until then the earlier
// leader is admitted. So a new leader first sends a request with its token, and then reads the
// state from which it continues: what it has read before may still change.
//
// Requests are not authenticated. A token is a number, and any client can send any number. One
// that is too large shuts out all true leaders until etcd's revision has passed it. Accept
// requests only from clients that may be candidates.
//
// An effect that is in no store, such as a mail that was sent, cannot be fenced. A cluster of
// etcd that is new, or restored from a backup, counts from a lower revision: remove the
// remembered tokens with it, or restore with a revision bump.
//
// # The client side
//
// A Tenure, which *election.Leadership is, gives the token. Transport adds it to HTTP
// requests; Conn, or the two interceptors, add it to gRPC calls:
//
//	client := http.Client{Transport: fence.Transport{Tenure: leadership}}
//	service := kvpb.NewKVClient(fence.Conn(conn, leadership))
//
// After the end of the tenure no request, call or message is sent. The body of an HTTP request
// whose sending has begun is sent to its end, unless the request has the leading context. Both the
// end of the tenure at the client and a refusal by the server wrap eldest.ErrNotLeading; only the
// refusal is a *RefusedError. An http.RoundTripper does not make errors of HTTP answers: Refused
// does.
//
// # The server side
//
//	f, err := fence.New(fence.Config{Elections: []string{"billing"}, Store: store})
//	handler = f.Handler(handler)
//	server := grpc.NewServer(grpc.UnaryInterceptor(f.UnaryServer()), grpc.StreamInterceptor(f.StreamServer()))
//
// A fence has the elections whose leaders its resource belongs to. Tokens of different
// elections are not comparable and are kept apart by name. The newest tokens are in a Store of
// the user's, which should be as durable as the data. Memory is one that loses them at a
// restart.
//
// # The exact form
//
// TokenFrom(ctx) is the token with which a request was admitted. The handler compares it in
// the transaction that writes: it advances the newest token in a table of the same
// database, and rolls back if that one is newer. Then no write of an older leader commits
// after a write of a newer one. docs/fencing.md has the statements, and tests/sqlite a
// program that a test stops for longer than its lease, and whose late write is refused.
// A handler that finds an older token itself returns a *RefusedError, or calls its ServeHTTP.
//
// # On the wire
//
// A request has Eldest-Token, "<election>=<token>", with the name's bytes escaped as in a
// URL (Format). An HTTP refusal is 412 with Eldest-Token and Eldest-Newest in its header;
// one of gRPC is FAILED_PRECONDITION with a fencepb.Refused in its details.
package fence
