// Package capture has programs talk to etcd through a wiretap, and keeps what was said.
//
//	c, err := capture.Start(ctx, capture.Config{})
//	if err != nil { ... }
//	code, err := c.Run(ctx, capture.Program{Args: []string{"etcdctl", "get", "key"}, Out: os.Stdout})
//	messages, err := c.Close()
//	entries := transcript.Normalise(messages)
//
// Without endpoints it brings an etcd of one member of its own, which is empty at the
// beginning and gone at the end.
//
// # Not guaranteed
//
// That a program is traced: one that does not dial the address that it is told goes past
// the wiretap. That it ends: Run waits for it until its context ends.
//
// # What programs are told
//
// The address of the wiretap, host:port, is in ELDEST_ENDPOINTS and ETCDCTL_ENDPOINTS, which
// eldest's commands and etcdctl read, and in place of {} in the arguments. Other variables of
// the two that would make them talk to the wiretap with TLS are taken out.
package capture
