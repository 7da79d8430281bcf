// Package web is an HTTP server of which one instance leads: it follows the rules of package
// curator, for services that are not gRPC. Every node always listens. The leader serves a request,
// a follower forwards it to the leader, and while no leader is known the request waits for one.
//
//	front, err := web.New(web.Config{Node: e, Election: "orders", NodeID: "n1"}) // e: an *elector.Elector
//	if err != nil { ... }
//	server := &http.Server{Addr: ":8080", Handler: front}
//	go server.ListenAndServe()
//	go front.Run(ctx) // follows the leader, until ctx ends
//	err = e.Run(ctx, func(ctx context.Context, l *elector.Leadership) error {
//		return front.Lead(ctx, l, orders.New(l)) // serves, until the tenure ends
//	})
//
// A handler begins only in a tenure that holds at that moment, and its context ends with the
// tenure. That the handler stops in time is not guaranteed: what it does after the end of the
// tenure is concurrent with the next leader. So it must write to etcd through the tenure's guard
// (elector.Leadership, G4), and to other stores with its token.
//
// # One hop
//
// A forwarded request carries the token of the tenure that it is meant for, and the ID of the node
// that forwards it, in the headers Eldest-Hop and Eldest-From. The receiver serves it in that
// tenure or refuses it, and never forwards it again. Handlers do not see the two headers; Forwarded
// reports them if they were verified. With mutual TLS a hop is accepted only from the node that it
// names (NodeCertificate). Without certificates any client can write the headers: such a request is
// served in the tenure that it names or refused, and Forwarded does not report it.
//
// Bodies are streamed in both directions at the same time, with trailers, interim answers and
// upgrades such as WebSocket. An HTTP/1 connection whose request was answered before its body was
// read is closed. Path, query, Host and headers arrive as they were sent, except for headers of one
// connection. The caller's address is added to X-Forwarded-For; X-Forwarded-Host and
// X-Forwarded-Proto are added if the caller has sent none. A service whose handlers trust these
// headers must have a proxy in front of all nodes that sets them.
//
// # Nothing is sent twice
//
// A handler is called at most once for each request of a caller. If no connection to the leader was
// made, the request has not left this node: it waits as if no leader were known, and goes to the
// node that leads then. Once it has left, it is never sent again.
//
// net/http's Transport alone would send it again: when a reused connection breaks before the first
// byte of an answer, it repeats a GET, HEAD, OPTIONS or TRACE, or a request with a header
// Idempotency-Key or X-Idempotency-Key, if the body is empty or can be made again (GetBody). Over
// HTTP/2 it also repeats what the server reset with PROTOCOL_ERROR or REFUSED_STREAM, or has not
// begun before its GOAWAY. It repeats no request with a body that cannot be made again, so every
// request gets such a body. There are two costs. A request that is sent at the moment in which the
// leader closes an idle connection is answered with 502. Over HTTP/2 a request without a body
// reaches the handler with an unknown ContentLength (-1). If a caller, or a proxy in front of the
// nodes, repeats a request, that counts as another request.
//
// # Answers
//
// The service's answer is passed on unchanged. A caller may instead receive
//
//	503  nothing was applied, the request can be sent again: no leader was known, or the
//	     leader not reached, in Config.Wait; more than Config.MaxWaiting requests wait; the
//	     node is stopping; or the node that was forwarded to does not lead in that tenure
//	502  the request may have been carried out: the leader was lost, or the tenure ended,
//	     before there was an answer
//	403  a hop that another sender has forged (Config.VerifyHop)
//	400  headers of a hop that no Front can have written
//
// with a JSON object: election, node, reason and nothing_applied, which is true for all but 502.
// 503 has Retry-After. A handler that receives the end of its tenure gives the same answers with
// Front.Refuse; if it returns without an answer after the end of its tenure, the answer is 502. An
// answer of unknown length that was begun before the end of a tenure, and ends after it, is
// aborted, because its caller could not detect that it is incomplete.
//
// # Dead leaders
//
// A leader that crashed remains known until its lease expires. When another leader is known,
// requests that were forwarded to the last one are aborted after Config.Grace.
package web
