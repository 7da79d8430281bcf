// Package story is how a play is told: to people, line by line while it happens, and to
// checks, as a history. What is played is its users' business.
//
//   - History keeps facts and lets a play wait for them. A fact is any type that knows
//     when it happened.
//   - Tape puts lines on paper in the order of their times, although processes report
//     late. Style says how much of a terminal the paper is, Lively when nobody reads it.
//   - Verdict is what a check found. A check without material is not OK.
//
// Not guaranteed: that causes come before effects whose reports are later than
// SettleTime.
//
// All times are of one machine's wall clock. Those of other processes carry no
// monotonic reading, so no fact's may have one (time.Time.Round(0)): they would be
// compared on different clocks.
package story
