package plays_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

func TestMain(m *testing.M) {
	etcdtest.Parallel(8)
	cleanup := func(code int) {
		if path, err := binary(); err == nil {
			_ = os.RemoveAll(filepath.Dir(path)) // it lies in the temporary directory
		}
		os.Exit(code)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(cleanup))
}
