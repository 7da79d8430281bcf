// Package lab has the laboratory's commands: those that show elections (demo, service, trace, and lab,
// in a browser), measure them (bench) and test them under faults (chaos).
//
// Taking part in elections needs nothing of the laboratory. Package oracle judges histories, sim
// runs the real etcd in virtual time, load runs it for ten minutes in real time, and internal has
// the packages that they share.
package lab
