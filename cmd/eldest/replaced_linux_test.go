package main

import (
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

// TestMembersAreReplacedUnderCommands: all members of etcd are replaced by members with other addresses,
// one after another. "eldest run" leads on with the same token, and the program is not restarted; the
// waiting "eldest campaign" then wins at the new members.
//
// Fails when the commands do not follow the members.
func TestMembersAreReplacedUnderCommands(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, etcdtest.Config{Members: 3, Replaceable: true})
	e := &etcd{Cluster: c, t: t, endpoint: strings.Join(c.Endpoints(), ",")}
	e.env = []string{"ELDEST_ENDPOINTS=" + e.endpoint, "ELDEST_COMMAND_TIMEOUT=" + patience.String(), mark(t)}
	leader := e.start("run", "svc", "--json", "--ttl", "20s", "--", "sleep", "1h")
	started := leader.Told("started")
	waiter := e.start("campaign", "svc", "--json", "--ttl", "20s")
	waiter.Event("registered")
	waiter.Event("waiting")
	for _, next := range [][]int{{0, 1}, {2}} { // one that the commands know stays until they follow
		for _, i := range next {
			require.NoError(t, c.ReplaceElsewhere(bounded(t), i))
		}
		for _, i := range next {
			for _, p := range []*clitest.Process{leader, waiter} {
				p.Eventually(func() bool {
					found := connected(t, p.Process.Pid, c.Member(i).Endpoint)
					if !found {
						time.Sleep(200 * time.Millisecond) // the table has all connections of the machine
					}
					return found
				}, "%v connects to the new member %d", p.Args, i)
			}
		}
	}
	e.endpoint = strings.Join(c.Endpoints(), ",")
	code, stdout, stderr := e.line("leader", "svc", "--json")
	require.Zero(t, code, stderr)
	require.Equal(t, started["token"], parse[object](t, stdout)["token"], "the same tenure")
	require.NoError(t, syscall.Kill(int(started["pid"].(float64)), 0), "the program was not restarted")
	resigned(leader)
	require.Greater(t, waiter.Event("leader")["token"], started["token"])
	waiter.Signal(syscall.SIGTERM)
	waiter.Event("resigned")
	waiter.Exits(0)
}

// connected reports whether a process has a TCP connection to a URL of 127.0.0.1.
func connected(t *testing.T, pid int, to string) bool {
	t.Helper()
	u, err := url.Parse(to)
	require.NoError(t, err)
	port, err := strconv.Atoi(u.Port())
	require.NoError(t, err)
	table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", pid))
	require.NoError(t, err)
	sockets := map[string]bool{}
	for line := range strings.Lines(string(table)) {
		// Its number, the local address, the remote one, the state (1: established); the tenth field is the inode.
		if f := strings.Fields(line); f[2] == fmt.Sprintf("0100007F:%04X", port) && f[3] == "01" {
			sockets["socket:["+f[9]+"]"] = true
		}
	}
	for _, file := range glob(fmt.Sprintf("/proc/%d/fd/*", pid)) {
		if name, _ := os.Readlink(file); sockets[name] {
			return true
		}
	}
	return false
}
