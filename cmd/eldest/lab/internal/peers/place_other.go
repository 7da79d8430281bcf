//go:build !linux

package peers

import (
	"fmt"
	"os"
)

// place returns the directory for data, and what kind of storage that is.
func place(dir string) (path, storage string) {
	if dir != "" {
		return dir, dir
	}
	return os.TempDir(), fmt.Sprintf("disk (%s)", os.TempDir())
}
