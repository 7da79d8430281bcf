// Package clusterview shows the elections of an existing etcd cluster on the page of "eldest lab". It
// implements feed.Source.
//
// It reads the keys once and then watches them, with one watch: of one election, if one is named,
// otherwise of all keys in the namespace. So it needs read permission on that range, and nothing
// else. Only Config.Write lets it change something: a transfer and an eviction, with the checks of
// the commands "eldest transfer" and "eldest evict".
//
// # Which keys are an election's
//
// A candidate's key ends in the lease to which it is attached; no other program names its keys so.
// What is before that is the election. It may begin with a directory: package keys calls "svc" in the
// namespace "prod/" what is shown as "prod/svc" if the namespace is not given. An election is shown
// from the first candidate on that was seen, also when its queue is empty.
//
// # What it costs
//
// At the start, and after an interruption of the watch, the names of all keys in the range are read,
// 2,000 at a time, and the queues; keys that are named like candidates, 100 at a time, are compared
// with the leases in their names, and read if there is a candidate of a new election among them. etcd
// sends each change of a key in the range, also of keys that belong to no election. While a page is
// open, etcd is asked for the time that each lease has left: every second for up to 20 leases, and at
// most 20 leases a second, of the first 200 elections, 100 candidates each, 200 leases in all. Each
// endpoint is asked for its status every two seconds.
//
// # Not guaranteed
//
// Completeness: at most 1,000 elections, and of a queue the first 100 candidates, are shown, and no
// election whose name is not UTF-8, or whose directory is longer than keys.MaxName; of other keys, the
// first 256 bytes. New values of keys are shown ten times a second at most. Time: a
// lease's time left is in whole seconds, rounded down, and seconds old if there are many leases. After
// a compaction, or an interrupted watch, the keys are read again: what happened in between is not
// shown. A member of etcd that is none of the endpoints is not shown.
package clusterview
