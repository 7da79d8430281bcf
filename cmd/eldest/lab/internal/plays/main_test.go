package plays_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// They wait most of the time, and not for a processor. -parallel wins.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	cleanup := func(code int) {
		if path, err := binary(); err == nil {
			_ = os.RemoveAll(filepath.Dir(path)) // it lies in the temporary directory
		}
		os.Exit(code)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(cleanup))
}
