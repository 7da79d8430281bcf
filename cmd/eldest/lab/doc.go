// Package lab is the laboratory of the command: what shows elections (demo, service, trace),
// measures them (bench) and tests them under faults (chaos).
//
// The command mounts these commands; nothing else of the laboratory is needed to take part in
// elections. Below it, package oracle judges histories, sim runs the real etcd in virtual time,
// load runs it for ten minutes in real time, and internal has what they share.
package lab
