// Package traces exports elections and forwarded calls as OpenTelemetry spans. It needs only
// OpenTelemetry's API; the SDK and the exporter are the program's.
//
// Not guaranteed: that a span of an election is available while it lasts. Spans are exported when
// they end, and a tenure may last for weeks. Package metrics exports the present state.
//
// # A campaign
//
// Hooks makes two spans of each candidacy, in one trace. Their times are those of the events, not
// those of the hook calls.
//
//	eldest.campaign  from the position in the queue to the win, or to the end without one
//	    registered, waiting (once for each predecessor), predecessor evicted, won or ended
//	eldest.tenure    its child: from the win to the end of the leading context
//	    lease at risk, lease recovered, watch interrupted, suspended, resumed, ended
//
// Attributes are eldest.election, eldest.key and eldest.token, and where they apply
// eldest.predecessor, eldest.queue, eldest.revision, eldest.cause (a word, see hooks.Cause and
// hooks.Trouble) and eldest.error (the whole text). A span that did not end by choice (the session
// was lost, the key was removed) has the status Error, with the cause as its description. Both
// spans have the token, and so do those of forwarded calls, so that one search finds a tenure and
// the calls that were served in it.
//
// # A forwarded call
//
// A call to a curator has a span at each node that receives it and one for the hop between them,
// all in the trace that the caller began:
//
//	shop.Cart/Add  client     the caller's own
//	shop.Cart/Add  server     the follower that was called
//	shop.Cart/Add  client     the hop: eldest.hop
//	shop.Cart/Add  server     the leader: eldest.forwarded_from, eldest.token (see below)
//
// Instrument adds all of this to a curator's configuration; Server and Hop are the two interceptors
// by themselves. The leader's span names the forwarding node only if the node was verified
// (curator.Forwarded), which is not possible in plain text. The handler's context carries the
// leader's span.
package traces
