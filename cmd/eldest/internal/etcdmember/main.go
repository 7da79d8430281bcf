// Command etcdmember is one etcd member as a process of its own, for tests: "eldest etcd member"
// without the rest of eldest. It is a command of its own so that the tests' binary depends only on
// the embedded server and the few files around it: it is rebuilt fast when these have not changed,
// and a command that does not compile does not break every test.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/eldest-io/eldest/cmd/eldest/internal/memberproc"
)

func main() {
	// The stores of tests are small. With Go's default of 100 the garbage collector runs so often that a
	// busy member takes a quarter more processor time.
	debug.SetGCPercent(400)
	if err := memberproc.Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "etcdmember:", err)
		os.Exit(1)
	}
}
