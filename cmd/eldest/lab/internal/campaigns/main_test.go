package campaigns_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// They wait most of the time, and not for a processor. -parallel wins.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	// An embedded member that stops leaves its idle HTTP connections to peers, both ends of
	// which are in this process, to their timeouts of seconds.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("net/http.(*conn).serve"),
		goleak.IgnoreAnyFunction("net/http.(*connReader).backgroundRead"),
	)
}
