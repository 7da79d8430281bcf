// Package instant is the one clock of a chaos run: what all its processes read alike, so
// that an instant of one can be compared with an instant of another. It is the clock that
// goes on while the machine sleeps and that nobody sets (CLOCK_BOOTTIME), counted from the
// beginning of a series, for the sake of those who read the history.
//
// # Not guaranteed
//
// That it is shared on other systems than Linux: there package lease falls back to a clock
// that each process counts from its own beginning.
package instant
