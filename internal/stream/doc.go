// Package stream watches any number of keys and ranges over one stream of etcd's Watch API, with
// three goroutines in all.
//
// etcd's client has a goroutine and a buffer of several KiB for each watch. Here a watch is
// one small value.
//
//   - client.go gives all that watch through one client the same stream.
//   - stream.go keeps the stream open. An interruption ends all watches: the watcher of a key
//     watches it again, and reads it when that watch has begun. So there is one way to learn
//     what is true, at the beginning as after an interruption.
//   - send.go puts requests on the stream without blocking the caller.
//   - check.go finds out that a stream has fallen silent: once for the stream, not once for
//     each key.
//   - over.go is such a stream over a clientv3.Watcher, for clients that are not plain: one whose Watcher
//     is wrapped, by a namespace, say. There each watch costs what it costs etcd's client.
//
// # Not guaranteed
//
// That a change is reported at once where a watch begins at a revision of the past, and other
// keys were changed since: etcd serves it within 100 ms.
package stream
