// Package electiontest provides tests with participants of an election, on the etcd of package
// etcdtest: a session and a candidate, and the events that their hooks received.
//
//	p := electiontest.Join(t, cli, name)     // closed with the test
//	tenure := p.Lead(t)                      // it must win at once
//	waits := other.Queue(t)                  // registered now, and waiting in the background
//	require.NoError(t, tenure.Resign(ctx))
//	next := electiontest.Wins(t, waits)
//
// # Not guaranteed
//
// Events that a test does not read may be lost: a channel keeps the first of them, and the rest are
// dropped.
package electiontest
