// Package campaigns runs small scenarios of an election on a recorded connection: some candidates
// campaign, something happens to one of them, and the next one leads.
//
//	err := campaigns.Play(ctx, wire, campaigns.Config{Election: "jobs", Act: campaigns.Resign})
//
// Each step waits until the messages of the previous step have been recorded, so that two runs of a
// scenario record the same messages in the same order, and readers see which message causes which.
// Not guaranteed: that the candidates of a real program act in such an order. Otherwise they are
// ordinary candidates of package election, or of etcd's concurrency package.
//
// Each candidate has its own client, lease and lane: c1, c2 and so on. c1 always leads at first.
package campaigns
