package transcript

import (
	"strconv"
	"unicode/utf8"
)

// names formats what differs from run to run.
type names interface {
	// lease and rev format a lease's ID and a revision; zero means none.
	lease(id int64) string
	rev(revision int64) string
	// watch returns the name of a watch of a call, from the number that etcd gave it.
	watch(call int, id int64) string
	// text replaces IDs in a key or a value, before it is quoted.
	text(s string) string
	// exact reports whether to write what differs between any two runs.
	exact() bool
}

// raw formats everything as it is.
type raw struct{}

func (raw) lease(id int64) string        { return strconv.FormatInt(id, 16) }
func (raw) rev(revision int64) string    { return "r" + strconv.FormatInt(revision, 10) }
func (raw) watch(_ int, id int64) string { return "w" + strconv.FormatInt(id, 10) }
func (raw) text(s string) string         { return s }
func (raw) exact() bool                  { return true }

// How many bytes of a key and of a value are shown.
const (
	keyShown   = 96
	valueShown = 48
)

// key quotes a key; a long one is shortened.
func key(k []byte, n names) string { return quoted(n.text(string(k)), keyShown) }

// value quotes a value.
func value(v []byte, n names) string { return quoted(n.text(string(v)), valueShown) }

// quoted formats a text as a Go string, which cannot control a terminal.
func quoted(text string, limit int) string {
	if len(text) <= limit {
		return strconv.Quote(text)
	}
	keep := limit
	for keep > 0 && !utf8.RuneStart(text[keep]) {
		keep--
	}
	return strconv.Quote(text[:keep]) + "… (" + strconv.Itoa(len(text)) + " bytes)"
}
