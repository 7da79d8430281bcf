package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// tree is a copy of the repository to which mutants are applied.
type tree struct{ dir string }

// rootOf finds the root of the repository at or above the working directory: the directory of
// go.work.
func rootOf(dir string) (string, error) {
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.work above the working directory")
		}
	}
}

// copyTree copies the files of root that git lists to dir, as they are in the working tree. It does
// not copy files that git ignores.
func copyTree(ctx context.Context, root, dir string) (tree, error) {
	names, err := git(ctx, root, nil, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return tree{}, err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		err := copyFile(filepath.Join(root, name), filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // the file was removed, and is still in git's index
			return tree{}, err
		}
	}
	return tree{dir}, nil
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return nil
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return write(to, text, info.Mode().Perm())
}

func write(path string, text []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, mode)
}

// mutate applies a mutant, all of it or nothing; restore reverses it.
func (t tree) mutate(ctx context.Context, m *mutant) (restore func() error, err error) {
	if err := apply(ctx, t.dir, m); err != nil {
		return func() error { return nil }, err
	}
	// Also when the run is interrupted: otherwise the next run would have two mutants.
	return func() error { return apply(context.WithoutCancel(ctx), t.dir, m, "--reverse") }, nil
}

// apply is git apply in a directory. It fails where the context of a change differs from the patch.
func apply(ctx context.Context, dir string, m *mutant, flags ...string) error {
	_, err := git(ctx, dir, m.text, append([]string{"apply"}, flags...)...)
	return err
}

// git runs git in a directory. A copy is not a repository, even if a directory above it is.
func git(ctx context.Context, dir string, stdin []byte, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}
