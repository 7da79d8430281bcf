// Package plays tests "eldest demo", "eldest service", "eldest bench" and "eldest chaos" as their
// users meet them: as commands that start processes, write to a pipe, are interrupted and killed, and leave
// nothing behind. What they judge by is tested in their own packages.
//
// Not guaranteed: that a demo holds on a machine that has no time for it.
package plays
