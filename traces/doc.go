// Package traces writes elections and forwarded calls down as OpenTelemetry spans. It
// needs OpenTelemetry's API only; the SDK and the exporter are the program's.
//
// Not guaranteed: that a span of an election is there while it lasts. Spans are exported
// when they end, and a tenure may last for weeks. What is going on now is for package
// metrics.
//
// # A campaign
//
// Hooks makes two spans of each candidacy, in one trace. They begin and end when the
// things happened, not when the hooks ran.
//
//	eldest.campaign  from the place in the queue to the win, or to the end without one
//	    registered, waiting (once for each predecessor), predecessor evicted, won or ended
//	eldest.tenure    its child: from the win to the end of the leading context
//	    lease at risk, lease recovered, watch interrupted, suspended, resumed, ended
//
// Attributes are eldest.election, eldest.key and eldest.token, and where they apply
// eldest.predecessor, eldest.queue, eldest.revision, eldest.cause (a word, see
// hooks.Cause and hooks.Trouble) and eldest.error (the whole text). A span that was not
// ended by choice (the session was lost, the key was removed) has the status Error, and
// the cause for its description. The token is on both spans and on those of forwarded
// calls, so that one search finds a tenure and what was served in it.
//
// # A forwarded call
//
// A call to a curator has a span at each node that it comes to and one for the hop
// between them, all in the trace that the caller began:
//
//	shop.Cart/Add  client     the caller's own
//	shop.Cart/Add  server     the follower that was asked
//	shop.Cart/Add  client     the hop: eldest.hop
//	shop.Cart/Add  server     the leader: eldest.forwarded_from, eldest.token (see below)
//
// Instrument puts all of it into a curator's configuration; Server and Hop are the two
// interceptors by themselves. The leader's span names the node that forwarded only where
// that was verified (curator.Forwarded), which it is not in plain text. The handler's context carries the leader's span.
package traces
