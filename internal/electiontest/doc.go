// Package electiontest gives tests those who take part in an election, on the etcd of package
// etcdtest: a session and a candidate, with what their hooks were told.
//
//	p := electiontest.Join(t, cli, name)     // closed with the test
//	tenure := p.Lead(t)                      // it must win at once
//	waits := other.Queue(t)                  // registered now, and waiting in the background
//	require.NoError(t, tenure.Resign(ctx))
//	next := electiontest.Wins(t, waits)
//
// # Not guaranteed
//
// Events that nobody takes: a channel keeps the first of them, and the rest are dropped.
package electiontest
