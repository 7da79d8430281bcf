package transcript

import (
	"strconv"
	"unicode/utf8"
)

// names says how what differs from run to run is written.
type names interface {
	// lease and rev write a lease's ID and a revision; zero is none of either.
	lease(id int64) string
	rev(revision int64) string
	// watch names a watch of a call by the number that etcd gave it.
	watch(call int, id int64) string
	// text takes IDs out of a key or a value, before it is quoted.
	text(s string) string
	// exact says whether to write what no two runs have in common.
	exact() bool
}

// raw writes everything as it is.
type raw struct{}

func (raw) lease(id int64) string        { return strconv.FormatInt(id, 16) }
func (raw) rev(revision int64) string    { return "r" + strconv.FormatInt(revision, 10) }
func (raw) watch(_ int, id int64) string { return "w" + strconv.FormatInt(id, 10) }
func (raw) text(s string) string         { return s }
func (raw) exact() bool                  { return true }

// How much of a key and of a value is shown, in bytes.
const (
	keyShown   = 96
	valueShown = 48
)

// key quotes a key; what is too long is cut.
func key(k []byte, n names) string { return quoted(n.text(string(k)), keyShown) }

// value quotes a value.
func value(v []byte, n names) string { return quoted(n.text(string(v)), valueShown) }

// quoted writes a text as a string of Go, which cannot make a terminal do anything.
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
