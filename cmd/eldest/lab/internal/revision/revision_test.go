package revision_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/revision"
)

func ExampleHere() {
	known := regexp.MustCompile(`^([0-9a-f]{40}(-dirty)?|unknown)$`)
	fmt.Println(known.MatchString(revision.Here()))
	// Output: true
}

func TestHere(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(dir))
	require.Equal(t, "unknown", revision.Here())

	git := func(args ...string) {
		t.Helper()
		out, err := exec.Command("git", append([]string{"-c", "user.name=n", "-c", "user.email=n@n"}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	git("init", "-q")
	require.NoError(t, os.WriteFile("file", nil, 0o600))
	git("add", "file")
	git("commit", "-q", "-m", "m")
	git("tag", "v1") // a name may move
	clean := revision.Here()
	require.Regexp(t, `^[0-9a-f]{40}$`, clean)
	require.NoError(t, os.WriteFile("file", []byte("changed"), 0o600))
	require.Equal(t, clean+"-dirty", revision.Here())
}
