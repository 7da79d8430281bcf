// Package peertest runs a system's servers and clients for the tests of its adapter, as a run of package peers
// does: with the same processes, and with the same network, which can be cut. [Suite] has the tests of what all
// systems have in common.
//
// # Not guaranteed
//
// That participants are processes of their own: they are clients in the process of the test.
package peertest
