// Package page shows a report of "eldest bench peers" to a reader who chooses an election: as one HTML
// page, and as the page docs/results/elections.md with the chart elections.svg beside it.
//
// # The table
//
// One row is one system with one set of settings, one column is one question, and in each column less is
// better. A cell has the median, the longest round and the number of rounds, or how many of how many
// rounds had two leaders. Every cell says something: a figure, that the event did not happen within the
// limit, that the system has no such scenario, that all rounds failed, or that nothing was measured, each
// with its reason as a note below the table.
//
// The least figure of a column, among those with the same settings, is marked as the best, and so is each
// figure that is shown with the same digits. A cell with failed rounds, or with rounds without the event,
// is never the best, because those rounds are missing in its median.
//
// # Where Eldest is behind
//
// Each cell in which Eldest is not marked is listed, with the figures of all systems before it and the
// reasons of reasons.go. If those have none, the page says that no reason is known; a test fails if that is
// so for the committed run.
//
// # Not guaranteed
//
// That a reason explains all of a difference: each was measured or documented by itself, not in the run
// that is shown. That an order of two figures repeats, if their ranges overlap. The markup may change;
// programs should read the JSON, which the HTML page contains.
package page
