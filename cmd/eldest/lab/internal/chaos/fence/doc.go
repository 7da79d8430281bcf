// Package fence is a store outside etcd that refuses older tokens: what G2 asks of
// whoever keeps data elsewhere. It runs in the harness's process, so that a participant's
// request can be under way while the participant is stopped or killed.
//
// # Protocol
//
// HTTP: a POST of the form token=7&who=p3, answered by 200 or, for an older token, by 409.
// The store accepts a token that is not older than the newest it has accepted, which the
// module's public fence.Memory compares. It writes
// each request into the history, in the order in which it decided, before it answers.
package fence
