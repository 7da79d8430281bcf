// Package truth records what etcd committed, as it was: every change of every key, in
// order, from before the first participant to the end.
//
// It watches each member on a client of that one alone, straight and not through the proxies
// that faults are made with. What one member cannot say, because it is stopped, cut off,
// restarted or replaced, another one does: changes are taken by revision, whoever tells
// of them first. As long as a majority is never lost for good, nothing is.
//
// # Compaction
//
// A compaction beyond what has been recorded would leave a gap. Whoever compacts must
// wait until that revision was recorded (Reached). Should there be a gap all the same,
// Err says so, and the run proves nothing.
//
// # Not guaranteed
//
// The instant of a commit: the recorded one is when the news arrived, which is later.
package truth
