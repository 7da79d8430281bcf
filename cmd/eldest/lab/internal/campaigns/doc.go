// Package campaigns plays small scenes of an election on a wire that is listened to: some
// candidates stand, something happens to one of them, and the next one leads.
//
//	err := campaigns.Play(ctx, wire, campaigns.Config{Election: "jobs", Act: campaigns.Resign})
//
// Not guaranteed: that candidates of a real program do things one after another as these do.
// Each step waits until the one before has been said on the wire, so that two runs of one
// scene say the same in the same order, and who reads it sees what follows from what.
// Nothing else about them is special: they are candidates of package election, or of etcd's
// concurrency package.
//
// Each candidate has a client, a lease and a lane of its own, c1, c2 and so on; c1 leads at
// first, whatever it is that happens.
package campaigns
