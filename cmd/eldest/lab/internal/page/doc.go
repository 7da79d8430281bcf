// Package page serves the page of "eldest lab": one HTML file with style sheet and scripts, which
// are embedded, and the language of package feed over HTTP.
//
//	GET  /?token=T      sets the cookie, and redirects to /
//	GET  /              the page
//	GET  /assets/NAME   its style sheet, scripts and pictures
//	GET  /info          feed.Info
//	GET  /events        feed.Events, as server-sent events
//	GET  /done          what was done, as a feed.Scenario
//	POST /do            a feed.Action
//	POST /play          a feed.Scenario
//
// The events come in messages of up to 2,000 each, and about 1 MB: the id of a message is the Seq of its last event,
// its data is a JSON array. A stream begins after the header Last-Event-ID or, if there is none, the
// query's "after". A POST is answered with {}, or with {"error": "..."}: 409 if the action was
// refused, 500 if it failed, another 4xx if the request was wrong.
//
// # Who may use it
//
// The page can kill processes, and on an existing cluster with --write depose leaders. So every
// request needs a token of 128 random bits, which is in the address that the command prints and then
// in a cookie that scripts cannot read and that other sites' pages do not send. A request for another
// host than the server's own is refused, because a name that an attacker owns may resolve to this
// machine. A POST must be JSON, and have the origin of the page if it has one. The page itself may
// load nothing from elsewhere, and no inline script.
//
// # Not guaranteed
//
// Privacy on a machine that is shared: cookies do not distinguish ports, so another program that
// serves pages at the same host name receives the cookie if the browser visits it; and who can read
// the terminal reads the token. There is no TLS: on an address that is not loopback, the token can be
// read on the network.
package page
