package docs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A page that is right, of every kind of thing, and the same page broken in each way that
// there is a check for: a check that finds nothing proves nothing.
func TestKindsAreFound(t *testing.T) {
	r, err := tree()
	require.NoError(t, err)
	code, err := code()
	require.NoError(t, err)
	command, err := eldest()
	require.NoError(t, err)
	one := stage(t)
	check := func(t *testing.T, text string) []Fault {
		// It stands where docs/README.md stands.
		return r.all(t.Context(), Parse("docs/README.md", []byte(text)), code, command, func() Stage { return one })
	}
	for name, c := range map[string]struct {
		right, wrong string
		kind, says   string
	}{
		"file":             {"[a](run.md)", "[a](runs.md)", "link", "there is no docs/runs.md"},
		"file in a table":  {"| a |\n|---|\n| [a](run.md) |", "| a |\n|---|\n| [a](runs.md) |", "link", "there is no"},
		"case of a name":   {"[a](../README.md)", "[a](../Readme.md)", "link", "there is no Readme.md"},
		"by reference":     {"[a]\n\n[a]: run.md", "[a]\n\n[a]: runs.md", "link", "there is no"},
		"picture":          {"![a](benchmarks/handover-ratios.svg)", "![a](benchmarks/ratio.svg)", "link", "there is no"},
		"HTML":             {`<img src="run.md">`, `<img src="runs.md">`, "link", "there is no"},
		"set of pictures":  {`<picture><source srcset="run.md 1x"></picture>`, `<picture><source srcset="runs.md 1x"></picture>`, "link", "there is no"},
		"anchor":           {"[a](run.md#three-processes)", "[a](run.md#four-processes)", "link", "no such heading"},
		"anchor here":      {"# Two, `three` & 4\n[a](#two-three--4)", "# Two\n[a](#three)", "link", "no such heading"},
		"same heading":     {"# a\n# a\n[a](#a-1)", "# a\n[a](#a-1)", "link", "no such heading"},
		"line of a file":   {"[a](../doc.go#L2)", "[a](../doc.go#L20000)", "link", "has no line 20000"},
		"absolute":         {"[a](https://etcd.io)", "[a](/run.md)", "link", "must be relative"},
		"scheme":           {"<https://etcd.io>", "[a](ftp://etcd.io)", "link", "no address"},
		"test":             {"`TestKindsAreFound`", "`TestKindsAreLost`", "name", "no such test"},
		"start of a test":  {"`TestKinds…`", "`TestKind_…`", "name", "no such test"},
		"function":         {"`election.New`", "`election.Old`", "name", "has no Old"},
		"field":            {"`election.Config.Election`", "`election.Config.Selection`", "name", "has no Selection"},
		"path":             {"`tests/docs`", "`tests/doks`", "name", "no such file"},
		"no word":          {"```json\n{}\n```", "```\n{}\n```", "mark", "must say what it is"},
		"no reason":        {"```text not-run=\"a drawing\"\nx\n```", "```text\nx\n```", "mark", "needs file="},
		"unknown word":     {"```sh exit=1\nfalse\n```", "```sh exits=1\nfalse\n```", "mark", "nothing that a block can say"},
		"indented":         {"```sh\ntrue\n```", "text\n\n    true\n", "mark", "fence it"},
		"statements":       {"```go\n_ = election.Config{KV: client}\n```", "```go\n_ = election.Config{KW: client}\n```", "go", "unknown field KW"},
		"free name":        {"```go with=\"a string\"\n_ = a\n```", "```go\n_ = a\n```", "go", "undefined: a"},
		"declarations":     {"```go\nfunc f() { fmt.Println(1) }\n```", "```go\nfunc f() { fmt.Printline(1) }\n```", "go", "Printline"},
		"whole file":       {"```go\npackage main\n\nfunc main() {}\n```", "```go\npackage main\n\nfunc main() { x }\n```", "go", "undefined: x"},
		"syntax":           {"```go\nif true { return nil }\n```", "```go\nif true { return nil\n```", "go", "expected"},
		"ambiguous import": {"```go import=\"crypto/rand\"\n_ = rand.Text()\n```", "```go\n_ = rand.Text()\n```", "go", "say import="},
		"excerpt":          {"```go file=doc.go\npackage eldest\n```", "```go file=doc.go\npackage oldest\n```", "file", "it has not"},
		"order of a file":  {"```text file=go.mod\nmodule github.com/eldest-io/eldest\n…\nrequire (\n```", "```text file=go.mod\nrequire (\n…\nmodule github.com/eldest-io/eldest\n```", "file", "not there"},
		"file of a block":  {"```go file=doc.go\npackage eldest\n```", "```go file=dog.go\npackage eldest\n```", "file", "no file dog.go"},
		"JSON":             {"```json\n{\"a\": 1}\n```", "```json\n{a: 1}\n```", "parse", "json"},
		"YAML":             {"```yaml\na: [1]\n```", "```yaml\na: [1\n```", "parse", "yaml"},
		"shell":            {"```sh not-run=\"x\"\ntrue\n```", "```sh not-run=\"x\"\n(true\n```", "command", "no shell"},
		"command":          {"```sh not-run=\"x\"\neldest list a\n```", "```sh not-run=\"x\"\neldest lists a\n```", "command", "no command lists"},
		"flag":             {"```sh not-run=\"x\"\ngo run ./cmd/eldest list a --json\n```", "```sh not-run=\"x\"\ngo run ./cmd/eldest list a --jason\n```", "command", "no flag --jason"},
		"subcommand":       {"```sh not-run=\"x\"\neldest bench herd --size 10\n```", "```sh not-run=\"x\"\neldest bench hert --size 10\n```", "command", "no command hert"},
		"flag in a span":   {"`eldest list a --json`", "`eldest list a --jason`", "command", "no flag --jason"},
		"package":          {"```sh\ngo test ./tests/docs\n```", "```sh\ngo test ./tests/doks\n```", "command", "no package"},
		"name of a test":   {"```sh\ngo test ./tests/docs -run 'Kinds|Pages'\n```", "```sh\ngo test ./tests/docs -run 'Kinds|Papers'\n```", "command", "called Papers"},
		"flag of a test":   {"```sh\ngo test ./tests/load -load.for=1m\n```", "```sh\ngo test ./tests/load -load.four=1m\n```", "command", "called load.four"},
		"script":           {"```sh not-run=\"x\"\n.ci/run\n```", "```sh not-run=\"x\"\n.ci/runs\n```", "command", "no such script"},
		"harm":             {"```sh not-run=\"x\"\nrm go.mod\n```", "```sh\nrm go.mod\n```", "command", "\"rm\" is none of the commands"},
		"harm by go":       {"```sh\ngo version\n```", "```sh\ngo mod tidy\n```", "command", "go may run"},
		"harm by a file":   {"```sh\necho a >$TMP/a\n```", "```sh\necho a >a\n```", "command", "must go to $TMP"},
		"exit code":        {"```sh exit=4\neldest leader nobody\n```", "```sh\neldest leader nobody\n```", "run", "exit code 4, not 0"},
		"output":           {"```console\n$ echo it took 3 ms\nit took 4 ms\n```", "```console\n$ echo it took 3 ms\nit takes 3 ms\n```", "run", "where the page has"},
		"exact output":     {"```console exact\n$ echo 3\n3\n```", "```console exact\n$ echo 3\n4\n```", "run", "where the page has"},
		"left out":         {"```console\n$ echo one two; echo; echo three\none …\n…\n```", "```console\n$ echo one two; echo; echo three\none …\n```", "run", "where the page has"},
		"any order":        {"```console any-order\n$ printf 'b\\na\\n'\na\nb\n```", "```console\n$ printf 'b\\na\\n'\na\nb\n```", "run", "where the page has"},
		"code of a step":   {"```console exit=1\n$ true\n$ false\n```", "```console exit=1\n$ false\n$ false\n```", "run", "exit code 1, not 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Empty(t, check(t, c.right))
			faults := check(t, c.wrong)
			require.Len(t, faults, 1, "%v", faults)
			require.Equal(t, c.kind, faults[0].Kind, "%v", faults)
			require.Contains(t, faults[0].Text, c.says)
			require.Positive(t, faults[0].Line)
		})
	}
}

// A page that no link leads to is found.
func TestReachIsFound(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write("docs/README.md", "[a](a.md) [b](b)")
	write("docs/a.md", "[c](c.md#x)")
	write("docs/b/1.md", "")
	write("docs/c.md", "")
	r, err := Open(dir)
	require.NoError(t, err)
	require.Empty(t, r.Reach())
	write("docs/d.md", "[c](c.md)")
	r, err = Open(dir)
	require.NoError(t, err)
	require.Len(t, r.Reach(), 1)
	require.Equal(t, "docs/d.md", r.Reach()[0].Page)
}

// A block that does not end is ended, and so is what a block leaves in the background.
func TestBlocksAreEnded(t *testing.T) {
	r, err := tree()
	require.NoError(t, err)
	s := Stage{Tmp: t.TempDir(), Bin: bin}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, _, err = r.bash(ctx, "sleep 3600", s)
	require.ErrorContains(t, err, "ended from outside")

	out, code, err := r.bash(t.Context(), "sleep 3600 & echo $!", s)
	require.NoError(t, err)
	require.Zero(t, code)
	// Dead, though perhaps nobody has buried it yet.
	dead := "! kill -0 $0 2>/dev/null || grep -q ') Z ' /proc/$0/stat"
	require.Eventually(t, func() bool { return exec.Command("bash", "-c", dead, strings.TrimSpace(out)).Run() == nil }, 30*time.Second, 10*time.Millisecond)
}
