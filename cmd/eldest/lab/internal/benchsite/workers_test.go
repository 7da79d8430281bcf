package benchsite

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWorkers(t *testing.T) {
	w := NewWorkers(command, []byte("hello"))
	defer w.Close()
	for range 2 {
		p, err := w.Spawn(context.Background())
		require.NoError(t, err)
		out := bufio.NewReader(p.Out)
		line, err := out.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "hello\n", line)
		_, err = io.WriteString(p.In, "go on\n")
		require.NoError(t, err)
		line, err = out.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "go on\n", line)
		require.NoError(t, p.Kill())
		require.NoError(t, p.Kill(), "twice does nothing")
		_, err = out.ReadString('\n')
		require.ErrorIs(t, err, io.EOF, "who was killed has not failed")
	}
}

func TestWorkersThatEnd(t *testing.T) {
	w := NewWorkers(command, nil)
	defer w.Close()
	p, err := w.Spawn(context.Background())
	require.NoError(t, err)
	require.NoError(t, p.In.Close())
	text, err := io.ReadAll(p.Out)
	require.NoError(t, err)
	require.Equal(t, "\n", string(text))

	p, err = w.Spawn(context.Background())
	require.NoError(t, err)
	_, err = io.WriteString(p.In, "fail\n")
	require.NoError(t, err)
	_, err = io.ReadAll(p.Out)
	require.ErrorContains(t, err, "exit code 1")
	require.ErrorContains(t, err, "told to fail")
	require.NoError(t, p.Kill())

	_, err = w.Spawn(context.Background()) // one that is left to Close
	require.NoError(t, err)
}

func TestSumsOfMetrics(t *testing.T) {
	total := map[string]float64{}
	for range 2 {
		require.NoError(t, sum(strings.NewReader(`# TYPE a counter
a{x="1"} 3
a{x="2"} 4
# TYPE b gauge
b 5
# TYPE c histogram
c_bucket{le="1"} 1
c_bucket{le="+Inf"} 2
c_sum 7.5
c_count 2
# TYPE d summary
d{quantile="0.5"} 1
d_sum 10
d_count 3
e 1
`), total))
	}
	require.Equal(t, map[string]float64{"a": 14, "b": 10, "c_sum": 15, "c_count": 4, "d_sum": 20, "d_count": 6, "e": 2}, total)
	require.Error(t, sum(strings.NewReader("no metrics at all"), total))

	for _, urls := range [][]string{nil, {"http://127.0.0.1:1"}, {"::"}} {
		m := NewMeters(urls, nil)
		_, err := m.Read(context.Background())
		require.Error(t, err)
		m.Close()
	}
}
