// Package nodes runs the re-election loop in virtual time: nodes that want to lead for
// ever, on the real etcd server and client of package rig, under seeded faults. It has
// nothing but tests.
//
// What is judged: no two nodes lead at one moment, seen from their leading contexts and
// from their statuses; a node's tokens rise; none follows itself; lead functions of one
// node never overlap; once the faults are over, one node leads and all others follow
// it; and when all have been stopped, nothing is left in etcd or in the bubble.
package nodes
