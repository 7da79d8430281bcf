// Package feed is the language between the page of "eldest lab" and what it shows: events go to the
// page, actions come from it, both as JSON.
//
// An Event is something that has happened, or a new state of something that the page draws. A Log
// keeps the newest events and gives them to any number of readers, each at its own speed: a page
// that was opened late, or that reconnects, gets what it missed.
//
// An Action is something that the user of the page does. A Scenario is a list of actions with the
// time between them; what was done can be copied as a scenario and played again.
//
// Two programs speak this language: package sandbox, a cluster of the laboratory's own with which
// everything may be done, and package clusterview, which shows an existing cluster.
package feed
