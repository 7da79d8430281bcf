package campaigns_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) {
	// They wait most of the time, and not for a processor. -parallel wins.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, etcdtest.Embedded...)
}
