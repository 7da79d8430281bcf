package revision

import (
	"os/exec"
	"strings"
)

// Here is the commit that is checked out where the program runs, with "-dirty" behind it
// where there are changes, and "unknown" where there is no git or no repository. It blocks
// for as long as git takes, some milliseconds, and is safe for concurrent use.
func Here() string {
	name, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(name))
}
