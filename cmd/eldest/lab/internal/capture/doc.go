// Package capture runs programs that reach etcd through a wiretap, and keeps the messages.
//
//	c, err := capture.Start(ctx, capture.Config{})
//	if err != nil { ... }
//	code, err := c.Run(ctx, capture.Program{Args: []string{"etcdctl", "get", "key"}, Out: os.Stdout})
//	messages, err := c.Close()
//	entries := transcript.Normalise(messages)
//
// Without endpoints it starts its own etcd with one member, which is empty at the beginning and
// deleted at the end.
//
// # Not guaranteed
//
// Only a program that dials the given address is traced; others bypass the wiretap. So does a
// program that follows the members of a cluster, as clients of elector.Dial do by default, when it
// reaches those that the wiretap has not connected it to. A program may
// not end by itself: Run waits for it until its context ends.
//
// # The environment of programs
//
// The address of the wiretap, host:port, is in ELDEST_ENDPOINTS and ETCDCTL_ENDPOINTS, which
// eldest's commands and etcdctl read, and replaces {} in the arguments. Their other variables that
// would make them use TLS with the wiretap are removed. With ELDEST_FOLLOW_MEMBERS=false eldest's
// commands use no other address.
package capture
