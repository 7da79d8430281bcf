package interop

import (
	"io"
	"os"
	"testing"

	"go.etcd.io/etcd/etcdctl/v3/ctlv3"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// etcdctlEnv makes the test binary etcdctl.
const etcdctlEnv = "ELDEST_INTEROP_ETCDCTL"

func TestMain(m *testing.M) {
	if os.Getenv(etcdctlEnv) != "" {
		go func() { // it ends with the test, whatever happens to that
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(1)
		}()
		ctlv3.MustStart()
		return
	}
	etcdtest.Main(m)
}
