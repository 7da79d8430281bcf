//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asWitness in the environment makes the test binary a program to be run: it writes a
// sign of life every millisecond, or every five, with its name and the time, to the file that is
// named there. Programs of successive leaders share the file, so its order is that of the signs.
const asWitness = "ELDEST_TEST_AS_WITNESS"

// How a witness behaves, as arguments behind its name.
const (
	stubborn = "stubborn" // it does not end at SIGTERM
	parent   = "parent"   // it has a child in its group, and one that has left the group
	orphaned = "orphaned" // this one is a child

	near = "-near" // ends the name of the child in the group
)

func init() {
	if path := os.Getenv(asWitness); path != "" {
		witness(path, os.Args[1], os.Args[2:])
	}
}

func witness(path, name string, how []string) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		os.Exit(99)
	}
	say := func(what string) { fmt.Fprintf(file, "%s %d %s\n", name, time.Now().UnixNano(), what) }
	// Dozens of them are at it: each costs as little as it can, and so uses no timer of Go's. What
	// is killed in one step with its parent is less often asked.
	every := time.Millisecond
	if strings.HasSuffix(name, near) {
		every = 5 * time.Millisecond
	}
	fd, line, pause := int(file.Fd()), []byte(name+" "), syscall.NsecToTimespec(every.Nanoseconds())
	lives := func() {
		_, _ = syscall.Write(fd, append(strconv.AppendInt(line, time.Now().UnixNano(), 10), " lives\n"...))
		_ = syscall.Nanosleep(&pause, nil)
	}
	told := make(chan os.Signal, 10)
	signal.Notify(told, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1)
	if slices.Contains(how, parent) {
		for _, child := range []struct {
			name string
			away bool
		}{{name + near, false}, {name + "-away", true}} {
			cmd := exec.Command(os.Args[0], child.name, stubborn, orphaned)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: child.away}
			if cmd.Start() != nil {
				os.Exit(98)
			}
		}
	}
	// Of a test that failed nothing is left, either: its directory goes.
	for i := 1; ; i++ {
		if lives(); i%500 == 0 {
			if _, err := os.Stat(path); err != nil {
				os.Exit(97)
			}
		}
		select {
		case sig := <-told:
			say(sig.String())
			if sig == syscall.SIGTERM && !slices.Contains(how, stubborn) {
				os.Exit(0)
			}
			if sig == syscall.SIGINT && !slices.Contains(how, stubborn) {
				os.Exit(5)
			}
		default:
		}
	}
}

// sign is one sign of life.
type sign struct {
	name string // of the program, without that of its child
	who  string
	at   time.Time
	what string
}

// diary is the file of the signs of life.
type diary struct {
	t    *testing.T
	path string
	read *struct { // so far
		to  int64
		all []sign
	}
}

func newDiary(t *testing.T) diary {
	return diary{t, filepath.Join(t.TempDir(), "signs"), new(struct {
		to  int64
		all []sign
	})}
}

// program is the command line of a witness.
func (d diary) program(name string, how ...string) []string {
	return append([]string{"env", asWitness + "=" + d.path, os.Args[0], name}, how...)
}

func (d diary) signs() []sign {
	d.t.Helper()
	file, err := os.Open(d.path)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(d.t, err)
	defer func() { _ = file.Close() }()
	_, err = file.Seek(d.read.to, io.SeekStart)
	require.NoError(d.t, err)
	data, err := io.ReadAll(file)
	require.NoError(d.t, err)
	for line := range strings.Lines(string(data)) {
		if !strings.HasSuffix(line, "\n") {
			break // it is being written
		}
		d.read.to += int64(len(line))
		fields := strings.Fields(line)
		at, err := strconv.ParseInt(fields[1], 10, 64)
		require.NoError(d.t, err)
		name, _, _ := strings.Cut(fields[0], "-")
		d.read.all = append(d.read.all, sign{name, fields[0], time.Unix(0, at), fields[2]})
	}
	return d.read.all
}

// worked is how many signs of life are those of somebody who works.
const worked = 10

// lives waits until a process works: for signs of life that are later than now.
func (d diary) lives(who string) {
	d.t.Helper()
	since := time.Now()
	require.Eventually(d.t, func() bool {
		seen := 0
		for _, s := range d.signs() {
			if s.who == who && s.at.After(since) {
				seen++
			}
		}
		return seen >= worked
	}, patience, 5*time.Millisecond, "no signs of life of %s", who)
}

// livesFor waits for a sign of life that is later than the given time from now: longer than
// a lease lives that is not renewed, say.
func (d diary) livesFor(who string, long time.Duration) {
	d.t.Helper()
	until := time.Now().Add(long)
	time.Sleep(long) // the diary grows, and to read it all the time would keep the machine busy
	require.Eventually(d.t, func() bool {
		return slices.ContainsFunc(d.signs(), func(s sign) bool { return s.who == who && s.at.After(until) })
	}, patience, 20*time.Millisecond, "%s did not live for %v", who, long)
}

// heard waits until a process has told of a signal.
func (d diary) heard(who string, sig syscall.Signal) {
	d.t.Helper()
	require.Eventually(d.t, func() bool { return d.told(who, sig) }, patience, 5*time.Millisecond, "%s did not hear %v", who, sig)
}

func (d diary) told(who string, sig syscall.Signal) bool {
	word := strings.Fields(sig.String())[0]
	return slices.ContainsFunc(d.signs(), func(s sign) bool { return s.who == who && s.what == word })
}

// inTurn fails unless every sign of the one, and of its children, lies before the win of
// the other and before its first sign. Of the one lives has been awaited. It returns the last
// sign of the one.
func (d diary) inTurn(one, other string, win time.Time) time.Time {
	d.t.Helper()
	var last time.Time
	var lines, early int
	otherBegan := false
	for _, s := range d.signs() {
		switch {
		case s.name == other:
			otherBegan = true
		case s.name != one:
		default:
			lines++
			if s.at.After(last) {
				last = s.at
			}
			require.False(d.t, otherBegan, "%s lives at %v, after %s", s.who, s.at, other)
			if s.at.After(win) {
				early++
			}
		}
	}
	require.GreaterOrEqual(d.t, lines, worked, "INVALID: %s never worked", one)
	require.True(d.t, otherBegan, "INVALID: %s never worked", other)
	require.Zero(d.t, early, "signs of %s after the win of %s at %v; the last at %v", one, other, win, last)
	return last
}

// nobody waits until no process of the test is left: no witness, and no keeper of the election.
func (d diary) nobody(election string) {
	d.t.Helper()
	none(d.t, func(environ, _ []byte) bool { return bytes.Contains(environ, []byte(asWitness+"="+d.path)) })
	keepersEnd(d.t, election)
}

// nobodyOf waits until no process of the witness of that name is left, its children
// included.
func (d diary) nobodyOf(t *testing.T, name string) {
	t.Helper()
	none(t, func(environ, cmdline []byte) bool {
		words := strings.Split(string(cmdline), "\x00")
		return bytes.Contains(environ, []byte(asWitness+"="+d.path)) && len(words) > 1 && strings.HasPrefix(words[1], name)
	})
}

func timeOf(t *testing.T, o object) time.Time {
	when, err := time.Parse(time.RFC3339Nano, o["time"].(string))
	require.NoError(t, err)
	return when
}

// handle is a process of which the number is known. It stays that process's when it has
// ended and the number is given to another, which no signal must reach.
func handle(t testing.TB, pid int) *os.Process {
	t.Helper()
	p, err := os.FindProcess(pid)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Release() })
	return p
}
