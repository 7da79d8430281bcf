package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eldest-io/eldest/internal/onrecord"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const root = "../../../.."

// The committed pictures are those that the recording and the results give.
func TestPicturesAreCurrent(t *testing.T) {
	pictures, err := draw(root)
	require.NoError(t, err)
	require.Len(t, pictures, 2)
	for name, svg := range pictures {
		committed, err := os.ReadFile(filepath.Join(root, "docs", "pictures", name))
		require.NoError(t, err)
		require.Equal(t, string(committed), string(svg), "docs/pictures/%s is not current: run docs/pictures/generate", name)
	}
}

// The steps and checks of the recording are those of the current demo.
func TestRecordingIsOfThisDemo(t *testing.T) {
	var sources strings.Builder
	for _, folder := range []string{"demo", "story"} {
		files, err := filepath.Glob(filepath.Join(root, "cmd", "eldest", "lab", "internal", folder, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			sources.Write(data)
		}
	}
	lines, err := readCast(filepath.Join(root, "docs", "pictures", "demo.cast"))
	require.NoError(t, err)
	heads := 0
	for _, line := range lines {
		text := plain(line)
		switch {
		case len(line) == 1 && line[0].style == "bold":
			_, name, numbered := strings.Cut(text, ". ")
			if !numbered {
				name = text
			}
			text = name
		case strings.Contains(text, "✓"):
			text = strings.TrimSpace(strings.SplitN(strings.TrimSpace(text), "  ", 3)[1])
		default:
			continue
		}
		heads++
		require.Contains(t, sources.String(), text, "the demo has changed: run docs/pictures/generate record")
	}
	require.Greater(t, heads, 10)
}

func TestReadTerminal(t *testing.T) {
	lines, err := readTerminal("a \x1b[31mb\x1b[0m\r\n\r\n\x1b[1mc")
	require.NoError(t, err)
	require.Equal(t, [][]piece{{{"a ", ""}, {"b", "red"}}, nil, {{"c", "bold"}}}, lines)
	for _, bad := range []string{"\x1b[35ma", "a\x1b[2Jb", "a\tb"} {
		_, err := readTerminal(bad)
		require.Error(t, err, "%q", bad)
	}
}

func TestChoose(t *testing.T) {
	lines, err := readTerminal("one\n1\n\ntwo\n\nthree\n\nfour")
	require.NoError(t, err)
	shown, err := choose(lines, []string{"one", "four"})
	require.NoError(t, err)
	var text []string
	for _, line := range shown {
		text = append(text, plain(line))
	}
	require.Equal(t, []string{"one", "1", "", "⋯", "", "four"}, text)
	_, err = choose(lines, []string{"two", "one"})
	require.ErrorContains(t, err, `begins with "one"`)
}

// Bars are as long as their values, and a missing result is an error.
func TestChart(t *testing.T) {
	svg, err := chart([]panel{{Title: "t", Bars: []bar{{Contender: "eldest", value: 1}, {Contender: "concurrency", value: 4}}}}, "")
	require.NoError(t, err)
	require.Contains(t, string(svg), `<rect class="eldest" x="116" y="34" width="160"`)
	require.Contains(t, string(svg), `<rect class="concurrency" x="116" y="58" width="640"`)
	dir := t.TempDir()
	var empty bytes.Buffer
	zip := gzip.NewWriter(&empty)
	_, err = zip.Write([]byte(`{"results": []}`))
	require.NoError(t, err)
	require.NoError(t, zip.Close())
	require.NoError(t, os.MkdirAll(filepath.Join(dir, onrecord.Folder), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, onrecord.Folder, "bench-handover.json.gz"), empty.Bytes(), 0o600))
	_, _, err = readPanels(dir)
	require.ErrorContains(t, err, "has no result of eldest")
}
