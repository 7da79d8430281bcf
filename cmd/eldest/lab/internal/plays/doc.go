// Package plays holds the tests of the plays, "eldest demo" and "eldest service", and of
// "eldest bench", as their users meet them: as commands that start processes, write to a pipe, are
// interrupted and killed, and leave nothing behind. What the plays judge by is tested
// in their own packages.
//
// Not guaranteed: that a play goes well on a machine that has no time for it. The tests
// give it leases of two seconds, which is the least that the plays allow.
package plays
