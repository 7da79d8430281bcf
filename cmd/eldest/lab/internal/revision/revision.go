package revision

import (
	"os/exec"
	"strings"
)

// Here returns the commit that is checked out where the program runs, followed by "-dirty" if there
// are changes, or "unknown" if there is no git or no repository. It blocks while git runs, some
// milliseconds, and is safe for concurrent use.
func Here() string {
	name, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(name))
}
