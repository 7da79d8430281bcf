package browser_test

import (
	"flag"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

var (
	inBrowser  = flag.Bool("browser", false, "run the tests in Chromium, which take about forty seconds; CI=true does too")
	pictures   = flag.Bool("pictures", false, "write docs/pictures/lab-light.png and lab-dark.png")
	allLessons = flag.Bool("lessons", false, "play the setup of each lesson, not only of some, and what the lessons of missing rules say")
)

// groups is how many groups of tests run at the same time.
const groups = 3

func TestMain(m *testing.M) {
	etcdtest.Parallel(groups)
	cleanup := func(code int) {
		if path, err := command(); err == nil && path != "" {
			_ = os.RemoveAll(filepath.Dir(path)) // it is in the temporary directory
		}
		os.Exit(code)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(cleanup))
}

// command returns the path of the real command, which is built once; "" if no test is wanted.
var command = sync.OnceValues(func() (string, error) {
	if !wanted() {
		return "", nil
	}
	dir, err := os.MkdirTemp("", "eldest-browser-test-")
	if err != nil {
		return "", err
	}
	return clitest.Build("../../../..", dir)
})

// wanted reports whether the tests are to be run.
func wanted() bool { return *inBrowser || os.Getenv("CI") == "true" }
