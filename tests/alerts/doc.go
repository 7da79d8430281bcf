// Package alerts holds what docs/observability gives to operators against a real
// Prometheus server that scrapes real eldest processes: each query of the dashboard must
// return what it should, and each alert must fire for the election that has the trouble,
// and for no other.
//
// The server and promtool are Debian's package "prometheus"; where they are not installed
// the tests are skipped, and fail with CI=true.
//
// # Sixty times faster
//
// The rules are those of alerts.yaml with one change, made by the test: a minute is a
// second. The server scrapes and evaluates four times a second, as it would every 15 s. So
// a story of half an hour takes half a minute, and nothing else about the rules differs.
//
// # The stories
//
//	steady   three candidates, nothing happens: no alert, ever
//	shop     two nodes of a service that are called, nothing happens
//	flap     three nodes of a service; the leader's key is removed again and again
//	foreign  a key that is no candidate's
//	alone    one candidate
//	gone     one candidate, which is ended
//	split    one candidate each at two etcds: two leaders
//	dark     two nodes that are called, whose etcd is stopped, and goes on
//
// Three alerts need what a process does not do on demand, hooks that block, watches that
// break for hours, and thousands of calls that wait: they are shown firing by promtool, and
// here that their queries count.
package alerts
