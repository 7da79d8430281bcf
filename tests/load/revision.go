package load

import (
	"os/exec"
	"strings"
)

// revision names what is tested: the commit that is checked out, with "-dirty" where there
// are changes.
func revision() string {
	name, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(name))
}
