package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The program that measures, as a package of this module and as a file.
const (
	peersPackage = "github.com/eldest-io/eldest/cmd/eldest/lab/eldest-peers"
	peersFile    = "eldest-peers"
)

// runPeersProgram builds the program that has the clients and servers of all systems, and lets it take the
// place of this process, with the same flags. They are not a part of eldest: they would double its size,
// its memory and the time of its start. It returns only if that fails.
func runPeersProgram(cmd *cobra.Command, f *peersFlags) error {
	papers, err := openPeersPapers(cmd, f, nil) // a file that cannot be written is reported at once
	if err != nil {
		return err
	}
	if err := papers.close(); err != nil {
		return err
	}
	path, err := buildPeersProgram(cmd)
	if err != nil {
		return err
	}
	args := []string{peersFile, "bench", "peers"}
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			args = append(args, "--"+flag.Name+"="+value)
		}
	})
	return syscall.Exec(path, args, os.Environ())
}

// buildPeersProgram builds the program in the user's cache: of the version of this executable, or of the
// sources that it was built from. It blocks until that is done, a minute or so the first time.
func buildPeersProgram(cmd *cobra.Command) (path string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "eldest", "devel")
	build := exec.CommandContext(cmd.Context(), "go", "build", "-ldflags=-w", "-o", filepath.Join(dir, peersFile), peersPackage)
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Sum != "" { // from the module proxy
		dir = filepath.Join(cache, "eldest", info.Main.Version)
		build = exec.CommandContext(cmd.Context(), "go", "install", "-ldflags=-w", peersPackage+"@"+info.Main.Version)
		build.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=-mod=mod", "GOWORK=off")
	} else if build.Dir, err = peersSources(); err != nil {
		return "", err
	}
	path = filepath.Join(dir, peersFile)
	if _, err := os.Stat(path); err != nil {
		fmt.Fprintln(cmd.ErrOrStderr(), "building the program that measures, with the clients of all systems: about a minute, the first time")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	output, err := build.CombinedOutput()
	switch {
	case cmd.Context().Err() != nil:
		return "", context.Cause(cmd.Context())
	case errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("bench peers needs Go, to build its program with the clients of all systems: %w", err)
	case err != nil:
		return "", fmt.Errorf("building %s: %w\n%s", peersPackage, err, output)
	}
	return path, nil
}

// peersSources returns the directory of this package, from which go builds the program.
func peersSources() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if dir := filepath.Dir(file); ok && filepath.IsAbs(dir) {
		if _, err := os.Stat(filepath.Join(dir, peersFile)); err == nil {
			return dir, nil
		}
	}
	return "", fmt.Errorf("bench peers builds its program from the sources of eldest, which are not at %q any more: "+
		"install a released version, or run it in a checkout by go run ./cmd/eldest bench peers", filepath.Dir(file))
}
