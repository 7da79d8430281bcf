package browser_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

const (
	// browserLimit bounds the life of a browser, whatever its test does.
	browserLimit = 10 * time.Minute
	// callLimit bounds one call to the browser.
	callLimit = 30 * time.Second
	// starts is how often a browser is started: it has crashed at its start on a slow disk.
	starts = 3
	// closing is how long the processes of a browser may take to end.
	closing = 15 * time.Second
)

// The size of a window, unless a test wants another one.
const windowWidth, windowHeight = 1280, 800

// chromiumPath returns the path of Chromium. Without it, or if no test in it is wanted, the test is skipped.
func chromiumPath(t *testing.T) string {
	t.Helper()
	if !wanted() {
		t.Skip("SKIPPED: the page is tested in Chromium only with the flag -browser, or with CI=true")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const install = "apt-get install -y --no-install-recommends chromium"
	if os.Getenv("CI") == "true" {
		require.Fail(t, "SKIPPED IN CI: there is no Chromium", install)
	}
	t.Skipf("SKIPPED: there is no Chromium here: %s", install)
	return ""
}

// chromium is a browser that runs.
type chromium struct{ ctx context.Context }

// start starts a browser with a profile of its own, and ends it with the test.
func start(t *testing.T) *chromium {
	t.Helper()
	path := chromiumPath(t)
	for attempt := 1; ; attempt++ {
		c, err := launch(t, path)
		if err == nil {
			return c
		}
		t.Logf("starting %s, attempt %d: %v", path, attempt, err)
		require.Less(t, attempt, starts, "%s does not start", path)
	}
}

// launch starts a browser once.
func launch(t *testing.T, path string) (*chromium, error) {
	t.Helper()
	profile := filepath.Join(t.TempDir(), "profile")
	limited, cancel := context.WithTimeout(context.Background(), browserLimit)
	options := slices.Concat(chromedp.DefaultExecAllocatorOptions[:], []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.UserDataDir(profile), chromedp.WindowSize(windowWidth, windowHeight),
		chromedp.Flag("headless", "new"), chromedp.NoSandbox, chromedp.DisableGPU,
	})
	allocated, end := chromedp.NewExecAllocator(limited, options...)
	// A newer browser may send events that this version of chromedp does not have.
	ignore := func(string, ...any) {}
	ctx, leave := chromedp.NewContext(allocated, chromedp.WithErrorf(ignore), chromedp.WithLogf(ignore))
	t.Cleanup(func() {
		leave() // blocks until the browser has ended
		end()
		cancel()
		// A process of it that is about to end may write to the profile for a moment.
		require.Eventually(t, func() bool { return os.RemoveAll(profile) == nil }, closing, 50*time.Millisecond)
	})
	// The browser lives as long as the context of the first call.
	return &chromium{ctx}, chromedp.Do(ctx)
}
