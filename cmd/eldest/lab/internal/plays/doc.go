// Package plays tests "eldest demo", "eldest lab", "eldest service", "eldest bench" and "eldest
// chaos" as users run them: as commands that start processes, write to a pipe, are interrupted and
// killed, and leave nothing behind. Their checks are tested in their own packages.
//
// Not guaranteed: that a demo holds on an overloaded machine.
package plays
