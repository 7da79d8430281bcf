package layers_test

import (
	"go/build"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/internal/layers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// root is the root of the house.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	require.NoError(t, err)
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(mod), "module "+layers.Module+"\n"), "%s is not the root module", dir)
	return dir
}

// TestTheHouse reads the imports of every file and shows each broken rule with
// the reason for it.
func TestTheHouse(t *testing.T) {
	packages, err := layers.Read(root(t))
	require.NoError(t, err)
	for _, broken := range layers.Check(packages) {
		t.Errorf("%v", broken)
	}
}

// TestTheHouseIsRead guards the test above against reading nothing: the rooms are
// there, and so are imports that everybody knows of.
func TestTheHouseIsRead(t *testing.T) {
	packages, err := layers.Read(root(t))
	require.NoError(t, err)
	for _, room := range []string{
		".", "keys", "lease", "txn", "election", "observe", "internal/watch", "internal/latest", "internal/etcdtest",
		"internal/layers", "cmd/eldest",
	} {
		require.Contains(t, packages, room)
		require.NotEmpty(t, packages[room].Lines)
	}
	require.Contains(t, packages["lease"].Imports, "go.etcd.io/etcd/client/v3")
	require.Contains(t, packages["lease"].Imports, "golang.org/x/sys/unix", "files for one platform are read as well")
	require.Contains(t, packages["election"].Imports, layers.Module+"/txn")
	require.NotEmpty(t, packages["lease"].Goroutines)
	require.NotContains(t, packages["keys"].Imports, "go.etcd.io/etcd/client/v3", "imports of tests do not count")
}

// TestReadAgreesWithGo compares what is read here with what the go command's own
// package reads, for the files of this platform.
func TestReadAgreesWithGo(t *testing.T) {
	dir := root(t)
	packages, err := layers.Read(dir)
	require.NoError(t, err)
	for name, p := range packages {
		ours, err := build.ImportDir(filepath.Join(dir, name), 0)
		if err != nil {
			require.Empty(t, p.Imports, "%s: %v", name, err)
			continue
		}
		for _, imported := range ours.Imports {
			require.Contains(t, p.Imports, imported, name)
		}
	}
}

// TestViolationsAreFound puts each kind of violation into a house that has none.
func TestViolationsAreFound(t *testing.T) {
	const etcd = "go.etcd.io/etcd/client/v3"
	ours := func(room string) string { return layers.Module + "/" + room }
	for name, tc := range map[string]struct {
		room, imports string
		why           string // part of the reason; empty: allowed
	}{
		"root, a room":                       {".", ours("keys"), "every room imports the root"},
		"root, the client":                   {".", etcd, "the nouns are plain"},
		"root, gRPC":                         {".", "google.golang.org/grpc/codes", "the nouns are plain"},
		"root, strings":                      {".", "strings", ""},
		"keys, the client":                   {"keys", etcd, "must not be able to ask etcd"},
		"keys, context":                      {"keys", "context", "nothing in it blocks"},
		"keys, time":                         {"keys", "time", "does not depend on time"},
		"keys, lease":                        {"keys", ours("lease"), "knows nobody"},
		"lease, election":                    {"lease", ours("election"), "it knows time, not elections"},
		"lease, keys":                        {"lease", ours("keys"), "it knows time, not elections"},
		"lease, txn":                         {"lease", ours("txn"), "it knows time, not elections"},
		"lease, retry":                       {"lease", ours("internal/retry"), ""},
		"txn, lease":                         {"txn", ours("lease"), "it takes a lease ID, not a session"},
		"txn, time":                          {"txn", "time", "its context's business"},
		"txn, watch":                         {"txn", ours("internal/watch"), "neither waits nor watches"},
		"election, observe":                  {"election", ours("observe"), "nothing of observers"},
		"election, elector":                  {"election", ours("elector"), "the next campaign"},
		"election, gRPC":                     {"election", "google.golang.org/grpc", "not a service"},
		"observe, lease":                     {"observe", ours("lease"), "a reader can never hold"},
		"observe, txn":                       {"observe", ours("txn"), "a reader can never hold"},
		"observe, election":                  {"observe", ours("election"), "a reader can never hold"},
		"observe, latest":                    {"observe", ours("internal/latest"), ""},
		"elector, txn":                       {"elector", ours("txn"), "not of keys and transactions"},
		"curator, lease":                     {"curator", ours("lease"), "neither leases nor keys"},
		"curator, the guard":                 {"curator", ours("txn"), ""},
		"drop-in, elector":                   {"compat/concurrency", ours("elector"), "stands on no other face"},
		"drop-in, transactional memory":      {"compat/concurrency", etcd + "/concurrency", ""},
		"drop-in, another face":              {"compat/concurrency", ours("election"), "another face"},
		"election, etcd's elections":         {"election", etcd + "/concurrency", "without etcd's concurrency package"},
		"contender, etcd's elections":        {"bench/contender", etcd + "/concurrency", ""},
		"bench, etcd's elections":            {"bench", etcd + "/concurrency", "without etcd's concurrency package"},
		"simulation, etcd's elections":       {"tests/sim", etcd + "/concurrency", ""},
		"watch, keys":                        {"internal/watch", ours("keys"), "whatever they mean"},
		"watch, lease":                       {"internal/watch", ours("lease"), "whatever they mean"},
		"rpcerr, the client":                 {"internal/rpcerr", etcd, "must not be able to cause them"},
		"etcdtest, what is tested":           {"internal/etcdtest", ours("lease"), "must not depend on what they test"},
		"lease, etcdtest":                    {"lease", ours("internal/etcdtest"), "it knows time, not elections"},
		"command, an internal room":          {"cmd/eldest", ours("internal/watch"), "a command uses what a user can use"},
		"command's inside, an internal room": {"cmd/eldest/internal/demo", ours("internal/retry"), "a command uses what a user can use"},
		"command, its own inside":            {"cmd/eldest", ours("cmd/eldest/internal/devcluster"), ""},
		"command, the server":                {"cmd/eldest/internal/devcluster", "go.etcd.io/etcd/server/v3/embed", ""},
		"example, an internal room":          {"examples/curator", ours("internal/retry"), "in a module of the reader's own"},
		"example, a public room":             {"examples/curator", ours("curator"), ""},
		"example, cobra":                     {"examples/curator", "github.com/spf13/cobra", "nothing else"},
		"tests, an internal room":            {"tests/sim", ours("internal/watch"), "has tests of its own"},
		"tests, real etcd":                   {"tests/chaos", ours("internal/etcdtest"), ""},
		"lease, the server":                  {"lease", "go.etcd.io/etcd/server/v3/embed", "must not build etcd"},
		"lease, cobra":                       {"lease", "github.com/spf13/cobra", "the root module is light"},
		"lease, testify":                     {"lease", "github.com/stretchr/testify/require", "belongs into tests"},
		"lease, virtual time":                {"lease", "testing/synctest", "belongs into tests"},
		"lease, a library command":           {"lease", ours("cmd/eldest"), "it knows time, not elections"},
	} {
		t.Run(name, func(t *testing.T) {
			broken := layers.Check(map[string]*layers.Package{tc.room: {Imports: []string{tc.imports}, Documented: true}})
			if tc.why == "" {
				require.Empty(t, broken)
				return
			}
			require.Len(t, broken, 1)
			require.Equal(t, tc.room, broken[0].Where)
			require.Equal(t, "imports "+tc.imports, broken[0].What)
			require.Contains(t, broken[0].Why, tc.why)
		})
	}
}

func TestMisshapenRoomsAreFound(t *testing.T) {
	for name, tc := range map[string]struct {
		room string
		p    layers.Package
		what string
	}{
		"a room without a rule":      {"utility", layers.Package{Documented: true}, "has no rule"},
		"below a room with a rule":   {"lease/inner", layers.Package{Documented: true}, "has no rule"},
		"no doc.go":                  {"lease", layers.Package{}, "has no doc.go"},
		"a goroutine":                {"txn", layers.Package{Documented: true, Goroutines: []string{"txn/a.go:1:1"}}, "starts a goroutine"},
		"a long file":                {"lease", layers.Package{Documented: true, Lines: map[string]int{"lease/a.go": layers.MaxLines + 1}}, "has 501 lines"},
		"a nameless file":            {"lease", layers.Package{Documented: true, Lines: map[string]int{"lease/util.go": 1}}, "is named util"},
		"a nameless file of tests":   {"lease", layers.Package{Documented: true, Lines: map[string]int{"lease/helpers_test.go": 1}}, "is named helpers"},
		"unsafe, written by hand":    {"lease", layers.Package{Documented: true, Imports: []string{"unsafe"}, Generated: []string{"sync"}}, "imports unsafe"},
		"generated, a heavy import":  {"lease", layers.Package{Documented: true, Imports: []string{"a.org/x"}, Generated: []string{"a.org/x"}}, "imports a.org/x"},
		"a nameless package of ours": {"tests/common", layers.Package{Documented: true}, "is named common"},
	} {
		t.Run(name, func(t *testing.T) {
			broken := layers.Check(map[string]*layers.Package{tc.room: &tc.p})
			require.Len(t, broken, 1)
			require.Contains(t, broken[0].What, tc.what)
			require.NotEmpty(t, broken[0].Why)
		})
	}
}

// TestRulesSayWhy: a rule without its reason is an order.
func TestRulesSayWhy(t *testing.T) {
	for name, room := range layers.Rooms {
		require.NotEmpty(t, room.Otherwise, name)
		for _, m := range []map[string]string{room.May, room.MustNot} {
			for what, why := range m {
				require.NotEmpty(t, why, "%s, %s", name, what)
			}
		}
		for may := range room.May {
			base := strings.TrimSuffix(may, "/...")
			known := slices.ContainsFunc(slices.Collect(maps.Keys(layers.Rooms)), func(other string) bool {
				other = strings.TrimSuffix(other, "/...")
				return base == other || strings.HasPrefix(base, other+"/")
			})
			require.True(t, known, "%s may import %s, which is no room", name, may)
		}
	}
	for what, why := range layers.Excused {
		require.NotEmpty(t, why, what)
		room, pattern, ok := strings.Cut(what, ": ")
		require.True(t, ok, what)
		require.Contains(t, layers.Rooms, room)
		require.Contains(t, layers.Everywhere, pattern)
	}
}

// TestReadFilesOnDisk: what a file says is read, and what a test says is not.
func TestReadFilesOnDisk(t *testing.T) {
	const generated = "// Code generated by hand. DO NOT EDIT.\n\n"
	dir := t.TempDir()
	for file, source := range map[string]string{
		"keys/doc.go":          "// Package keys is documented.\npackage keys\n",
		"keys/keys_windows.go": "package keys\n\nimport c \"context\"\n\nfunc f(c.Context) { go f(nil) }\n",
		"keys/keys_test.go":    "package keys\n\nimport \"time\"\n",
		"keys/testdata/x.go":   "not Go",
		".hidden/x.go":         "not Go",
		"_hidden/x.go":         "not Go",
		"lease/doc.go":         "package lease\n",
		"lease/x.pb.go":        generated + "package lease\n\nimport (\n\t\"sync\"\n\t\"unsafe\"\n)\n",
		"lease/y.go":           "package lease\n\nimport \"sync\"\n",
		"lease/z.pb.go":        generated + "package lease\n\nimport \"sync\"\n",
		"cmd/main.go":          "// Command cmd is documented.\npackage main\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(source), 0o600))
	}
	packages, err := layers.Read(dir)
	require.NoError(t, err)
	require.Equal(t, map[string]*layers.Package{
		"keys": {
			Imports: []string{"context"}, Goroutines: []string{"keys/keys_windows.go:5:21"}, Documented: true,
			Lines: map[string]int{"keys/doc.go": 2, "keys/keys_windows.go": 5, "keys/keys_test.go": 3},
		},
		"lease": {
			Imports: []string{"sync", "unsafe"}, Generated: []string{"unsafe"},
			Lines: map[string]int{"lease/doc.go": 1, "lease/y.go": 3},
		},
		"cmd": {Lines: map[string]int{"cmd/main.go": 2}, Documented: true},
	}, packages)

	_, err = layers.Read(t.TempDir())
	require.ErrorContains(t, err, "no Go files")
	_, err = layers.Read(filepath.Join(dir, "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "lease", "bad.go"), []byte("pack"), 0o600))
	_, err = layers.Read(dir)
	require.Error(t, err)
}
