// Package routing decides what a node of a leader-elected service does with a call of any protocol:
// serve it in this node's tenure, forward it to the leader, refuse it, or let it wait.
package routing
