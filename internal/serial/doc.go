// Package serial runs a user's callbacks: in the order in which they were handed
// over, one at a time, on a goroutine of their own. The protocol hands a callback
// over and goes on at once, so a hook that blocks cannot cost a renewal, and a
// hook that calls back into the library meets no lock.
//
// The goroutine exists only while there is something to run. A queue that nobody
// uses costs nothing, and one whose callbacks return leaves nothing behind.
//
// Not guaranteed: that a callback runs soon, or at all while an earlier one
// blocks. At most Limit callbacks wait; what comes after that is dropped and
// counted, because memory that grows behind a stuck hook helps nobody.
package serial
