//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/internal/clitest"
)

// How a witness behaves, as arguments behind its name.
const (
	stubborn = "stubborn" // it does not end at SIGTERM
	parent   = "parent"   // it has a child in its group, and one that has left the group

	near = "-near" // ends the name of the child in the group
	away = "-away" // ends that of the other one
)

func init() {
	if filepath.Base(os.Args[0]) == "witness" {
		witness(os.Getenv(signsIn), os.Args[1], os.Args[2:])
	}
}

func witness(path, name string, how []string) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		os.Exit(99)
	}
	// Dozens of witnesses run at a time: each uses little processor time, and so no timer of Go's.
	fd, line := int(file.Fd()), []byte(name+" ")
	told := make(chan os.Signal, 10)
	signal.Notify(told, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1)
	if slices.Contains(how, parent) {
		for _, child := range []string{near, away} {
			cmd := exec.Command("/proc/self/exe")
			cmd.Args = []string{"witness", name + child, stubborn}
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: child == away}
			if cmd.Start() != nil {
				os.Exit(98)
			}
		}
	}
	// A witness of a failed test ends, too: the directory of its file is removed.
	for i := 1; ; i++ {
		_, _ = syscall.Write(fd, append(strconv.AppendInt(line, time.Now().UnixNano(), 10), " lives\n"...))
		pauseOf(signsEvery)
		if i%20 == 0 {
			runtime.Gosched() // to what receives the signals, if there is one processor only
		}
		if i%200 == 0 {
			if _, err := os.Stat(path); err != nil {
				os.Exit(97)
			}
		}
		select {
		case sig := <-told:
			fmt.Fprintf(file, "%s %d %s\n", name, time.Now().UnixNano(), sig)
			switch {
			case slices.Contains(how, stubborn):
			case sig == syscall.SIGTERM:
				os.Exit(0)
			case sig == syscall.SIGINT:
				os.Exit(5)
			}
		default:
		}
	}
}

// pauseOf sleeps without telling the scheduler of Go, which would wake another thread each time to run what
// else there is.
func pauseOf(d time.Duration) {
	pause := syscall.NsecToTimespec(int64(d))
	_, _, _ = syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&pause)), 0, 0)
}

// dead waits until no process of the witness of that name is left, its children included.
func (d *diary) dead(name string) {
	d.t.Helper()
	noProcess(d.t, signsIn+"="+d.path, name)
}

func timeOf(t testing.TB, o object) time.Time {
	when, err := time.Parse(time.RFC3339Nano, o["time"].(string))
	require.NoError(t, err)
	return when
}

// witness runs "eldest run" with a witness. The first of the flags is the election.
func (e *etcd) witness(flags, name string, how ...string) *clitest.Process {
	e.t.Helper()
	return e.run(slices.Concat(strings.Fields(flags), []string{"--", "witness", name}, how)...)
}

// program waits for the program of a run, and returns it and its keeper.
func program(r *clitest.Process) (program, keeper *os.Process) {
	r.T.Helper()
	program = handle(r.T, int(r.Told("started")["pid"].(float64)))
	return program, handle(r.T, clitest.Parent(r.T, program.Pid))
}

// resigned ends a run by SIGTERM.
func resigned(r *clitest.Process) {
	r.T.Helper()
	r.Signal(syscall.SIGTERM)
	r.Exits(0)
}
