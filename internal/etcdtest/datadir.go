package etcdtest

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// dataDir is a temporary directory that is removed when this process ends.
type dataDir struct {
	path     string
	watchman *exec.Cmd
	stdin    io.Closer
}

// The watchman's script: wait until stdin ends, which happens when the test has cleaned up or has
// died, then remove the directory. A member that is being killed may still write, hence the
// repetitions.
const watchScript = `cat >/dev/null; i=0
while [ -d "$1" ] && [ $i -lt 100 ]; do rm -rf "$1" 2>/dev/null || sleep 0.1; i=$((i+1)); done`

// newDataDir makes a directory in base. If base is "", it is in memory where the system allows
// that.
func newDataDir(base string) (*dataDir, error) {
	const pattern = "eldest-etcdtest-"
	path, err := os.MkdirTemp(cmp.Or(base, "/dev/shm"), pattern)
	if err != nil && base == "" {
		path, err = os.MkdirTemp("", pattern) // there is no /dev/shm, or this user may not write to it
	}
	if err != nil {
		return nil, err
	}
	d := &dataDir{path: path}
	d.watchman = exec.Command("/bin/sh", "-c", watchScript, "watchman", path)
	d.watchman.SysProcAttr = watchmanAttr()
	stdin, err := d.watchman.StdinPipe()
	if err == nil {
		err = d.watchman.Start()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("etcdtest: starting the watchman: %w", err), os.RemoveAll(path))
	}
	d.stdin = stdin
	return d, nil
}

// remove removes the directory and ends the watchman.
func (d *dataDir) remove() error {
	err := os.RemoveAll(d.path)
	return errors.Join(err, d.stdin.Close(), d.watchman.Wait())
}
