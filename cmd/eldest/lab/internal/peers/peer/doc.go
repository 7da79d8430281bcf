// Package peer describes ways to elect a leader, of any system, so that package peers can measure them
// side by side. Each system is a package beside this one; package systems lists them.
//
// A system has servers ([Servers]), which this run starts ([Fleet]), and clients ([Client]), one in each
// participant's process, used by the recipe that the system's own community uses ([Life] has what such a client
// has started). Everything about it that a reader of the results must know is in its [System]: the recipe, its
// documentation, its settings, what the store guards, and what is unfair.
//
// # Not guaranteed
//
// That [Tenure.Holds] is right: it reports what the client tells its user. That is what is measured. That a
// process of a fleet serves when [Fleet.Start] returns: see [Fleet.Await].
package peer
