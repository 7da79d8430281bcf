package badinput

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/internal/etcdtest"
)

var update = flag.Bool("update", false, "write docs/bad-input.md")

// document is the page of the committed table.
const document = "../../docs/bad-input.md"

func TestMain(m *testing.M) { etcdtest.Main(m) }

// row is one input.
type row struct {
	tried string
	try   func() error
	// want are the errors that errors.Is must find; empty: no error.
	want []error
	// op is the operation that an eldest.OpError must contain, with the election and the key;
	// empty: not required.
	op, election, key string
	// says is what the text must contain besides.
	says []string
	// sent is how many requests are sent, negative if that depends on etcd's answers; changes means
	// that etcd's revision may change.
	sent    int
	changes bool
	// result, if set, returns the result where there is no error.
	result func() string
	// after, if set, makes further checks.
	after func(t *testing.T)
}

// section is the rows of one package, with their counters.
type section struct {
	title, about string
	rows         []row
	// sent returns the requests so far, revision etcd's revision, and lives checks that nothing is
	// lost; each may be nil.
	sent     func() int
	counted  string // the head of the column in the table; empty: sent
	revision func() int64
	lives    func(t *testing.T)
	// left describes in the table what lives has checked.
	left string
	// hide makes a text the same in each run; nil if that is not needed.
	hide func(string) string
}

// TestBadInput tries all inputs and compares the table with the committed one.
func TestBadInput(t *testing.T) {
	var doc strings.Builder
	doc.WriteString(preface)
	complete := true
	for _, open := range []func(*testing.T) section{
		keysSection, leaseSection, identitySection, fenceSection, guardSection, txnSection, electionSection, strangeSection, observeSection,
		electorSection, groupSection, curatorSection, callsSection, tlsSection, resolverSection, permissionSection, spaceSection,
	} {
		s := open(t)
		fmt.Fprintf(&doc, "\n## %s\n\n%s\n\n", s.title, s.about)
		if s.left != "" {
			fmt.Fprintf(&doc, "After each row: %s.\n\n", s.left)
		}
		head := "| tried | came back |"
		if s.sent != nil {
			head += " " + cmp.Or(s.counted, "sent") + " |"
		}
		fmt.Fprintf(&doc, "%s\n%s\n", head, regexp.MustCompile(`[^|]+`).ReplaceAllString(head, "---"))
		for _, r := range s.rows {
			ran := false
			t.Run(s.title+"/"+r.tried, func(t *testing.T) {
				ran = true
				doc.WriteString(s.play(t, r))
			})
			complete = complete && ran
		}
	}
	if t.Failed() || !complete { // -run has left some rows out
		return
	}
	if *update {
		require.NoError(t, os.WriteFile(document, []byte(doc.String()), 0o644))
	}
	committed, err := os.ReadFile(document)
	require.NoError(t, err)
	require.Equal(t, string(committed), doc.String(), "docs/bad-input.md is not what comes back; go test ./tests/badinput -update")
}

// play tries one row and returns its line of the table.
func (s section) play(t *testing.T, r row) string {
	t.Helper()
	sent, revision := 0, int64(0)
	if s.sent != nil {
		sent = s.sent()
	}
	if s.revision != nil {
		revision = s.revision()
	}
	err := guarded(r.try)
	if s.sent != nil && r.sent >= 0 {
		assert.Equal(t, r.sent, s.sent()-sent, "requests that were sent")
	}
	if s.revision != nil && !r.changes {
		assert.Equal(t, revision, s.revision(), "something was changed")
	}
	r.check(t, err)
	if r.after != nil {
		r.after(t)
	}
	if s.lives != nil {
		s.lives(t)
	}
	return s.line(r, err)
}

// check compares an error with what the row wants.
func (r row) check(t *testing.T, err error) {
	t.Helper()
	if len(r.want) == 0 {
		require.NoError(t, err)
		return
	}
	require.Error(t, err)
	for _, want := range r.want {
		assert.ErrorIs(t, err, want)
	}
	if r.op != "" {
		var op *eldest.OpError
		require.ErrorAs(t, err, &op)
		assert.Equal(t, []string{r.op, r.election, r.key}, []string{op.Op, op.Election, op.Key})
		assert.ErrorContains(t, err, r.op)
		for _, name := range []string{r.election, r.key} {
			if name != "" {
				assert.ErrorContains(t, err, fmt.Sprintf("%q", name))
			}
		}
	}
	for _, says := range r.says {
		assert.ErrorContains(t, err, says)
	}
	assert.NotRegexp(t, `[\x00-\x1f\x7f]`, err.Error(), "what comes from outside reaches a terminal")
}

// guarded calls f; it returns a panic as an error that no row wants.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("PANIC: %v", p)
		}
	}()
	return f()
}

// hidden are the texts that differ from run to run.
var hidden = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`(127\.0\.0\.1|\[::\]):\d+`), "<address>"},
	{regexp.MustCompile(`lease [0-9a-f]{6,}`), "lease <id>"},
	{regexp.MustCompile(`/[0-9a-f]{12,}`), "/<id>"},
	{regexp.MustCompile(`\b(token|revision|found|after) [1-9]\d*`), "$1 <n>"},
	{regexp.MustCompile(`n{40,}`), "nnn…"},
	// The protobuf library makes its texts differ from build to build, on purpose.
	{regexp.MustCompile(`proto:\s|proto:\x{a0}`), "proto: "},
	// Either end of a connection may be the first to notice the timeout.
	{regexp.MustCompile(`stream terminated by RST_STREAM with error code: CANCEL`), "context deadline exceeded"},
	// The end of the tenure may be noticed before or after the wait for the mutex.
	{regexp.MustCompile(`eldest: candidate election "\w+" key "[^"]+" lease <id>: `), ""},
}

// line is a row's line of the table.
func (s section) line(r row, err error) string {
	back := "nothing"
	switch {
	case err != nil:
		back = err.Error()
		if s.hide != nil {
			back = s.hide(back)
		}
		for _, h := range hidden {
			back = h.what.ReplaceAllString(back, h.by)
		}
		back = "`" + strings.NewReplacer("|", `\|`, "`", "'").Replace(back) + "`"
		if len(r.want) > 0 {
			back = strings.Join(names(r.want), ", ") + ": " + back
		}
	case r.result != nil:
		back = r.result()
	}
	if s.sent == nil {
		return fmt.Sprintf("| %s | %s |\n", r.tried, back)
	}
	if r.sent < 0 {
		return fmt.Sprintf("| %s | %s | some |\n", r.tried, back)
	}
	return fmt.Sprintf("| %s | %s | %d |\n", r.tried, back, r.sent)
}
