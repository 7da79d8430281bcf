// Package routing is the rule by which a node serves a call, forwards it, refuses it, or
// lets it wait, whatever protocol it came by; and the waiting.
package routing
