package dropin

import (
	"testing"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) {
	// Half of the rows wait for seconds to show that an event does not happen, with either package.
	etcdtest.Parallel(24)
	etcdtest.Main(m)
}
