// Package stream watches any number of keys over one stream of etcd's Watch API, with
// three goroutines in all.
//
// etcd's client has a goroutine and a buffer of several KiB for each watch. Here a watch is
// one small value.
//
//   - stream.go keeps the stream open. An interruption ends all watches: who watched a key
//     reads it and watches it again from the revision of the answer. So there is one way to
//     learn what is true, at the beginning as after an interruption.
//   - send.go puts requests on the stream without blocking the caller.
//   - check.go finds out that a stream has fallen silent: once for the stream, not once for
//     each key.
//
// # Not guaranteed
//
// That a change is reported at once: where other keys were changed since the revision at
// which a watch begins, etcd serves it within 100 ms.
package stream
