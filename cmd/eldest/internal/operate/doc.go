// Package operate is what operators do to an election from outside: they read what its candidates
// publish, remove one, and hand leadership over. The commands and the page of "eldest lab" share it,
// so that both make the same checks.
//
// # Not guaranteed
//
// A Removal is what the queue was when it was planned. CarryOut removes that registration or
// nothing; which candidate leads afterwards may differ from what the plan says.
package operate
