package browser_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed/feedtest"
)

// listen reads the events beside the page, until the test ends, into a log.
func listen(t *testing.T, client *http.Client, base string) feedtest.Feed {
	t.Helper()
	f := feedtest.Feed{T: t, Of: feed.NewLog()}
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/events", nil)
	require.NoError(t, err)
	resp, err := client.Do(req)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	var reading sync.WaitGroup
	reading.Go(func() {
		lines := bufio.NewReader(resp.Body)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return // the test or the command has ended
			}
			data, ok := strings.CutPrefix(line, "data:")
			if !ok {
				continue
			}
			var batch []feed.Event
			if err := json.Unmarshal([]byte(data), &batch); err != nil {
				t.Errorf("the feed: %v in %s", err, data)
			}
			for _, e := range batch {
				f.Of.Add(e) // which gives it the same number
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		_ = resp.Body.Close()
		reading.Wait()
	})
	return f
}

// participantName returns the name of participant i, counted from 0.
func participantName(i int) string { return fmt.Sprintf("p%d", i+1) }
