// Package feedtest has what tests assert of a feed: of a sandbox, of an existing cluster, or of the
// server of a page whose events were added to a log.
//
//	f := feedtest.Feed{T: t, Of: source.Log()}
//	since := f.Seq()
//	f.Await(since, "p1 leads", feedtest.Reported("p1", "won"))
//
// # Not guaranteed
//
// Events that the log has dropped are not found. Reading a feed counts as an open page: see Log.Read.
package feedtest
