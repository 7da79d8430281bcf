// Package pointer is a queue for many candidates: one finds its predecessor by a pointer
// and not by a search.
//
// Not guaranteed: anything by the pointer. It is a hint about whom to watch, which may be
// missing, old or wrong, and is never the proof of a win.
//
// # The knob
//
// election.Config.Queue. etcd's concurrency package, and the default here
// (txn.ByCreateRevision), find the predecessor by a range in the order of create revisions:
// etcd reads and sorts the whole queue for it. In the default queue that happens inside the
// registering transaction, one after another for all that join: where thousands join at
// once, the time grows with the square of their number.
//
//	q := pointer.Queue{}
//	candidate, err := election.New(election.Config{Queue: q, ...})
//
// # How
//
// Beside the election's range there is one key, Key(election), that names the newest
// candidate. The transaction that registers reads it, writes the candidate and swaps it:
//
//	If   create(own) = 0
//	Then Get(pointer), Put(own, value, lease), Put(pointer, own, lease)
//	Else Get(own)
//
// Three single keys, whatever the queue's length. The pointer's mod revision is the create
// revision of the candidate it names, for one transaction wrote both: so the hint names a
// life of a key, not just a key.
//
// # What stays guaranteed
//
// G1 to G8, all of them, and the queue stays etcd's own, so candidates of other kinds may
// stand in it. Wins and their order are decided by txn.ByCreateRevision.Ahead, which this
// queue does not touch: when whom we watched is gone, etcd is asked who is older, and a
// pointer that was wrong costs a question. A candidate of another kind does not move the
// pointer: whoever enters next watches the one before it, learns of the foreign one when
// that one goes, and waits on.
//
// # What is lost
//
// Of G5: beside candidates of other kinds one departure may wake two waiters, one of
// each kind; among candidates of this queue it wakes one. Place.Queue is not known at
// registration. The election has a key outside its range, which permissions must cover
// and which goes with the lease of the newest candidate, or stays until the next one.
package pointer
