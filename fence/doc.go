// Package fence takes leaders' tokens to stores outside etcd: onto HTTP and gRPC requests
// on the client side, and on the server side through a check that refuses a token older
// than the newest one that has come. In one election tokens grow from tenure to tenure
// (G2), so a request of an earlier leader can be told from those of the present one, however
// late it arrives, and nobody's clock is asked.
//
// # Not guaranteed
//
// A request that was admitted may write after a newer one. The check comes before the
// handler, and what the handler writes comes later: an older leader's request can be
// admitted, wait inside the handler for a disk or a garbage collection while the newer
// leader's comes, is admitted and writes, and then write over it. The only exact place of
// the check is the transaction that writes; see below. What the check by itself does: from
// the moment at which a newer token was admitted no older one is.
//
// The fence learns of a tenure when its first request comes, not when it is won. Until then
// the earlier leader is admitted. So a new leader sends its token first, by any request, and
// only then reads the state that it goes on from: what it has read before may still change.
//
// Nobody is authenticated. A token is a number, and whoever may send a request may write
// any number. One that is too great shuts out all true leaders until etcd's revision has
// grown past it. Let requests come from those who may be candidates, and from nobody else.
//
// An effect that is in no store, such as a mail that was sent, cannot be fenced. And a
// cluster of etcd that was made anew, or restored from a backup, counts from a lower
// revision: remove the remembered tokens with it, or restore with a revision bump.
//
// # The client side
//
// A Tenure, which *election.Leadership is, gives the token. Transport puts it on HTTP
// requests; Conn, or the two interceptors, on gRPC calls:
//
//	client := http.Client{Transport: fence.Transport{Tenure: leadership}}
//	service := kvpb.NewKVClient(fence.Conn(conn, leadership))
//
// After the end of the tenure nothing is sent. Both the end here and a refusal there wrap
// eldest.ErrNotLeading, and only the latter is a *RefusedError. An HTTP answer is not made
// an error by an http.RoundTripper: Refused does that.
//
// # The server side
//
//	f, err := fence.New(fence.Config{Elections: []string{"billing"}, Store: store})
//	handler = f.Handler(handler)
//	server := grpc.NewServer(grpc.UnaryInterceptor(f.UnaryServer()), grpc.StreamInterceptor(f.StreamServer()))
//
// A fence has the elections whose leaders its resource belongs to; tokens of different
// elections compare with nothing, and are kept apart by name. The newest tokens are kept by
// a Store of the user's, because only the user knows what is as safe as the data. Memory is
// one that forgets at a restart.
//
// # The exact form
//
// TokenFrom(ctx) is the token that a request was admitted with. The handler compares it in
// the transaction that writes: it advances the newest token in a table of the same
// database, and rolls back if that one is newer. Then no write of an older leader commits
// after a write of a newer one. docs/fencing.md has the statements, and tests/sqlite a
// program that a test stops for longer than its lease, and whose late write is refused.
// A handler that finds an older token itself returns a *RefusedError, or has it answer by
// its ServeHTTP.
//
// # On the wire
//
// A request has Eldest-Token, "<election>=<token>", with the name's bytes escaped as in a
// URL (Format). An HTTP refusal is 412 with Eldest-Token and Eldest-Newest in its header;
// one of gRPC is FAILED_PRECONDITION with a fencepb.Refused in its details.
package fence
