// Package stage sets up the test environment of the examples below examples/customise: an etcd of
// their own, and candidates with sessions.
//
// Not guaranteed: that a program should do it like this. An example ends at the first failure
// (Must), and its etcd keeps its data in memory; a program gets its client from elector.Dial and
// checks each error.
//
//	ctx, client, stop := stage.Start()
//	defer stop()
//	anna, leave := stage.Enter(ctx, client, election.Config{Election: "jobs", Value: []byte("anna")})
//	defer leave()
//
// An example whose output must be the same in each run waits for conditions (Until) and never for a
// time.
package stage
