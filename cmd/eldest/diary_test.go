package main

import (
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// signsIn in the environment names the file to which the program "witness" writes a sign of life again
// and again, with its name and the time. Programs of successive leaders share the file, so it has the
// signs in their order.
const signsIn = "ELDEST_TEST_SIGNS"

// signsEvery is the pause between two signs of life.
const signsEvery = 5 * time.Millisecond

// sign is one sign of life.
type sign struct {
	name string // of the program, without that of its child
	who  string
	at   time.Time
	what string
}

// diary is the file of the signs of life.
type diary struct {
	t    testing.TB
	path string
	read int64 // so far
	all  []sign
}

func (d *diary) signs() []sign {
	d.t.Helper()
	file, err := os.Open(d.path)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(d.t, err)
	defer func() { _ = file.Close() }()
	_, err = file.Seek(d.read, io.SeekStart)
	require.NoError(d.t, err)
	data, err := io.ReadAll(file)
	require.NoError(d.t, err)
	for line := range strings.Lines(string(data)) {
		if !strings.HasSuffix(line, "\n") {
			break // it is being written
		}
		d.read += int64(len(line))
		fields := strings.Fields(line)
		at, err := strconv.ParseInt(fields[1], 10, 64)
		require.NoError(d.t, err)
		name, _, _ := strings.Cut(fields[0], "-")
		d.all = append(d.all, sign{name, fields[0], time.Unix(0, at), fields[2]})
	}
	return d.all
}

// worked is how many signs of life a program writes, at least, if it works.
const worked = 10

// lives waits until processes work: until each has written signs of life that are later than now.
func (d *diary) lives(who ...string) {
	d.t.Helper()
	since := time.Now()
	for _, who := range who {
		require.Eventually(d.t, func() bool {
			seen := 0
			for _, s := range d.signs() {
				if s.who == who && s.at.After(since) {
					seen++
				}
			}
			return seen >= worked
		}, patience, 4*signsEvery, "no signs of life of %s", who)
	}
}

// livesFor waits for a sign of life that is later than the given time from now: for example, longer
// than a lease lasts without renewals.
func (d *diary) livesFor(who string, long time.Duration) {
	d.t.Helper()
	until := time.Now().Add(long)
	time.Sleep(long) // the diary grows, and to read it all the time would keep the machine busy
	require.Eventually(d.t, func() bool {
		return slices.ContainsFunc(d.signs(), func(s sign) bool { return s.who == who && s.at.After(until) })
	}, patience, 20*time.Millisecond, "%s did not live for %v", who, long)
}

// received waits until a process has reported a signal.
func (d *diary) received(who string, sig syscall.Signal) {
	d.t.Helper()
	require.Eventually(d.t, func() bool { return d.told(who, sig) }, patience, 2*signsEvery, "%s did not receive %v", who, sig)
}

func (d *diary) told(who string, sig syscall.Signal) bool {
	word := strings.Fields(sig.String())[0]
	return slices.ContainsFunc(d.signs(), func(s sign) bool { return s.who == who && s.what == word })
}

// inTurn waits until other lives, and fails unless every sign of one, and of its children, is before
// the win of other and before the first sign of other. The caller has called lives for one. inTurn
// returns the last sign of one.
func (d *diary) inTurn(one, other string, win time.Time) (last time.Time) {
	d.t.Helper()
	d.lives(other)
	lines, early, otherBegan := 0, 0, false
	for _, s := range d.signs() {
		switch s.name {
		case other:
			otherBegan = true
		case one:
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
	require.Zero(d.t, early, "signs of %s after the win of %s at %v; the last at %v", one, other, win, last)
	return last
}
