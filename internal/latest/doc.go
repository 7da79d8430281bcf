// Package latest gives state to readers: not a queue of all events, but a cell with the newest
// value. A slow reader skips the values that it missed; it cannot block the writer or other
// readers, nor grow a buffer.
//
// The first read returns the present value, or blocks until there is one; each later read blocks
// until there is a newer value than the one before. Values are returned without a copy, so they
// should be immutable.
//
// A cell costs a pointer and, for each value, one channel, whatever the number of waiting readers:
// one close wakes ten thousand readers. A reader costs a version number and no goroutine.
package latest
