// Package stream watches any number of keys and ranges over one stream of etcd's Watch API, with
// three goroutines in all.
//
// etcd's client has a goroutine and a buffer of several KiB for each watch. Here a watch is
// one small value.
//
//   - client.go gives all users that watch through one client the same stream. Of a
//     plain client, each link is at another member than the one before.
//   - stream.go keeps the stream open. An interruption ends all watches. The user of a watch then
//     watches the key again, and reads it when the new watch has begun. So the state of a key is
//     read in the same way at the beginning and after an interruption.
//   - send.go puts requests on the stream without blocking the caller.
//   - check.go detects that a stream does not deliver any more: once for the stream, not once for
//     each key.
//   - over.go is such a stream over a clientv3.Watcher, for clients that are not plain, for example
//     because their Watcher is wrapped by a namespace. There each watch costs as much as in etcd's
//     client.
//
// # Not guaranteed
//
// A change may not be reported at once if the watch begins at a past revision, and other keys were
// changed since: etcd reports it within 100 ms.
package stream
