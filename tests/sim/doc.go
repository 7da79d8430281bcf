// Package sim tries elections under faults in virtual time, against the real
// etcd server and client.
package sim
