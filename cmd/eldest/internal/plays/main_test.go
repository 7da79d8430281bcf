package plays_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	cleanup := func(code int) {
		if path, err := binary(); err == nil {
			_ = os.RemoveAll(filepath.Dir(path)) // it lies in the temporary directory
		}
		os.Exit(code)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(cleanup))
}
