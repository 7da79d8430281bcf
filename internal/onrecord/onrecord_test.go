package onrecord_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/internal/onrecord"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const root = "../.."

// names returns the reference runs, each of which can be read.
func names(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, onrecord.Folder, "*.gz"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var all []string
	for _, file := range files {
		name, ok := strings.CutSuffix(filepath.Base(file), ".json.gz")
		require.True(t, ok, file)
		var run map[string]any
		require.NoError(t, onrecord.Read(root, name, &run))
		require.NotEmpty(t, run, name)
		all = append(all, name)
	}
	return all
}

// The folder has the runs that the checksums and the page list, and no others. The same run makes
// the same file on any day.
func TestRunsAreThoseWithChecksums(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, onrecord.Folder, "README.md"))
	require.NoError(t, err)
	listed, err := os.ReadFile(filepath.Join(root, onrecord.Folder, "SHA256SUMS"))
	require.NoError(t, err)
	var sums strings.Builder
	rows := 0
	for _, name := range names(t) {
		file := name + ".json.gz"
		data, err := os.ReadFile(filepath.Join(root, onrecord.Folder, file))
		require.NoError(t, err)
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), file)
		require.Contains(t, string(page), "| `"+name+"` |", "the page does not say what it is")
		rows++
		unzipped, err := gzip.NewReader(bytes.NewReader(data))
		require.NoError(t, err)
		require.Empty(t, unzipped.Name, "%s: compress with gzip -n", file)
		require.Zero(t, unzipped.ModTime, "%s: compress with gzip -n", file)
	}
	require.Equal(t, sums.String(), string(listed), "SHA256SUMS is not that of the files")
	require.Equal(t, rows, strings.Count(string(page), "\n| `"), "the page has a run that is not there")
}

// No run is elsewhere in the documents, or uncompressed.
func TestNoRunLiesOutside(t *testing.T) {
	imported := filepath.Join(root, "docs", "observability", "dashboard.json") // by users
	found := 0
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "docs"), func(file string, _ fs.DirEntry, err error) error {
		if name := strings.TrimSuffix(file, ".gz"); filepath.Ext(name) == ".json" && file != imported {
			found++
			require.Equal(t, filepath.Join(root, onrecord.Folder), filepath.Dir(file), "a run outside")
			require.NotEqual(t, name, file, "not compressed")
		}
		return err
	}))
	require.Len(t, names(t), found)
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) {
		file := filepath.Join(dir, onrecord.Folder, name+".json.gz")
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, data, 0o600))
	}
	var whole bytes.Buffer
	zip := gzip.NewWriter(&whole)
	_, err := zip.Write([]byte(`{"a": 1}`))
	require.NoError(t, err)
	require.NoError(t, zip.Close())
	write("whole", whole.Bytes())
	write("plain", []byte(`{"a": 1, "b": "not compressed"}`))
	damaged := bytes.Clone(whole.Bytes())
	damaged[len(damaged)-8] ^= 1 // a bit of the checksum
	write("damaged", damaged)

	var got struct{ A int }
	require.NoError(t, onrecord.Read(dir, "whole", &got))
	require.Equal(t, 1, got.A)
	require.ErrorIs(t, onrecord.Read(dir, "absent", &got), fs.ErrNotExist)
	require.ErrorIs(t, onrecord.Read(dir, "plain", &got), gzip.ErrHeader)
	require.ErrorIs(t, onrecord.Read(dir, "damaged", &got), gzip.ErrChecksum)
	var wrong *json.UnmarshalTypeError
	require.ErrorAs(t, onrecord.Read(dir, "whole", &[]int{}), &wrong)
	require.ErrorContains(t, onrecord.Read(dir, "absent", &got), "the run absent")
}
