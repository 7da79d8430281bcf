package postgres

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
)

// account is the user of the system that runs the server if this process is root, which the server refuses, and the
// name of the database's user.
const account = "postgres"

// programs returns the directory with the newest PostgreSQL's programs.
func programs() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", err
	}
	newest, dir := -1, ""
	for _, path := range found {
		bin := filepath.Dir(path)
		version, err := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
		if err == nil && version > newest {
			newest, dir = version, bin
		}
	}
	if dir == "" {
		return "", fmt.Errorf("postgres: Debian's package postgresql-15 is %w", peer.ErrMissing)
	}
	return dir, nil
}

// owner makes dir the property of the user that runs the server, and returns the user's name, "" for the present one.
func owner(dir string) (string, error) {
	if os.Getuid() != 0 {
		return "", nil
	}
	u, err := user.Lookup(account)
	if err != nil {
		return "", fmt.Errorf("postgres: the user %s, which runs the server if this process is root, is %w: %w", account, peer.ErrMissing, err)
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err := errors.Join(err1, err2); err != nil {
		return "", err
	}
	return account, os.Chown(dir, uid, gid)
}
