// Package latest hands state to readers: not a queue of everything that happened,
// but a cell with the newest value. A slow reader skips what it missed; it cannot
// block the writer, nor other readers, nor grow a buffer.
//
// The first read returns the present value, or blocks until there is one; each
// later read blocks for a value newer than the one before. Values are handed out
// as they are, so they should be immutable.
//
// A cell costs a pointer and, for each value, one channel, however many wait:
// ten thousand readers are woken by one close. A reader costs a version number
// and no goroutine.
package latest
