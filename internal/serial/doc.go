// Package serial runs a user's callbacks in the order in which they were queued, one at a time, on
// a goroutine of their own. The protocol queues a callback and continues at once. So a hook that
// blocks cannot delay a renewal, and a hook that calls the library meets no lock.
//
// The goroutine exists only while there is something to run. A queue that is not used costs
// nothing, and one whose callbacks return leaves nothing behind.
//
// Not guaranteed: that a callback runs soon, or that it runs at all while an earlier one blocks. At
// most Limit callbacks wait; later ones are dropped and counted, so that memory does not grow
// without a limit behind a hook that is stuck.
package serial
