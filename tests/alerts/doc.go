// Package alerts tests the files of docs/observability with a real Prometheus server that scrapes
// real eldest processes: each query of the dashboard must return the expected result, and each
// alert must fire for the election that has the fault, and for no other.
//
// The server and promtool are Debian's package "prometheus"; where they are not installed
// the tests are skipped, and fail with CI=true.
//
// # Sixty times faster
//
// The rules are those of alerts.yaml with two changes, made by the test: a minute is a second, and a
// "for" of a quarter of an hour is ten seconds. The server scrapes and evaluates four times a second,
// as it would every 15 s. So a scenario of a quarter of an hour takes a quarter of a minute; the rules
// are otherwise the same. promtool tests the "for" of each rule as it is.
//
// # The scenarios
//
//	steady   three candidates, no faults: no alert, ever
//	shop     two nodes of a service that are called, no faults
//	flap     three nodes of a service; the leader's key is removed repeatedly
//	foreign  a key that is not a candidate's
//	alone    one candidate
//	gone     one candidate, which is ended
//	split    one candidate each at two etcds, one of which is stopped later: two leaders
//	beats    one candidate with heartbeats, at the etcd that is stopped
//	dark     two nodes that are called, whose etcd is stopped and resumed
//
// Three alerts need events that a test cannot cause in real processes: hooks that block, watches
// that break for hours, and thousands of calls that wait. promtool shows that they fire, and this
// package that their queries count.
package alerts
