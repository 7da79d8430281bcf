package page

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/peers/peer"
	"github.com/eldest-io/eldest/internal/onrecord"
)

// The section has each cell in which Eldest is not the best, with both figures and a reason, and no other.
func TestBehindIsComplete(t *testing.T) {
	s := sample()
	find := func() map[string]deficit {
		columns := columns(s.Report)
		all, _ := tables(s.Report, columns)
		list, ok := deficits(s.Report, columns, all)
		require.True(t, ok)
		found := map[string]deficit{}
		for _, d := range list {
			found[d.Setting+" "+d.Column] = d
		}
		for _, table := range all {
			for i, c := range columns {
				_, behind := found[table.Setting+" "+c.Title]
				require.Equal(t, !table.of(ours).Cells[i].Best, behind, c.Title)
			}
		}
		require.Len(t, found, len(list))
		return found
	}
	found := find()
	require.Contains(t, found, "defaults Crash of the process")
	require.NotContains(t, found, "defaults Two leaders, by belief")
	d := found["defaults Hand-over"]
	require.Equal(t, "2.69 ms; max 2.97 ms, 20 rounds", d.Ours)
	require.Equal(t, "PostgreSQL: 1.19 ms; max 1.32 ms, 20 rounds", d.Best)
	require.Equal(t, "2.2", d.Times)
	require.False(t, d.Overlap)
	require.Contains(t, d.Reason, "a majority of etcd's members stores")
	require.Contains(t, d.Reason, "One server holds the lock in shared memory")
	require.Contains(t, found["defaults Crash of the process"].Before, "PostgreSQL 1.88 ms, Redis 7.02 s, ZooKeeper 8.01 s")
	for name, d := range found {
		require.NotContains(t, d.Reason, unknown, name)
	}

	// In memory the disk is no reason.
	require.Contains(t, d.Reason, "disk")
	storage := s.Setup.Storage
	s.Setup.Storage = "memory (tmpfs at /dev/shm)"
	for name, d := range find() {
		require.NotContains(t, d.Reason, "disk", name)
	}
	s.Setup.Storage = storage

	s.find("redis", peer.Defaults, "crash", "win").P50 = 1
	require.Contains(t, find()["defaults Crash of the process"].Reason, "Redis notices a failure within 8 s by its settings, Eldest within 10 s.")

	// A fault of Eldest has no excuse.
	s.find("eldest", peer.Shortest, "cut", "two-leaders").Samples[0] = 1
	require.Equal(t, unknown, find()["shortest Two leaders, by belief"].Reason)
	s.fail("eldest", peer.Shortest, "crash", "win", 1, "lost")
	require.Equal(t, "crash: 1 of 10 rounds failed, the first with: lost; "+unknown, find()["shortest Crash of the process"].Reason)
	s.lacks("eldest", "fanout", "by design")
	require.Equal(t, "fanout: has none: by design", find()["shortest Fan-out to 1,000 observers"].Reason)
}

// Every reason is about a column, and every column in which Eldest can be slower or larger has one.
func TestReasonsAreAboutColumns(t *testing.T) {
	keys := map[string]bool{}
	for _, q := range questions {
		keys[q.Key] = true
	}
	for its := range costs {
		require.True(t, keys[its.column], its.column)
		require.NotContains(t, []string{"two-leaders", "late-writes"}, its.column, "it would excuse a fault")
	}
	for _, of := range []map[ground]string{gains, onDisk} {
		for its := range of {
			require.True(t, keys[its.column], its.column)
		}
	}
}

// The committed run has a reason for each cell in which Eldest is behind.
func TestReasonsOfTheReferenceRun(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..", "..", "..")
	if _, err := os.Stat(filepath.Join(root, onrecord.Folder, Data+".json.gz")); os.IsNotExist(err) {
		t.Skipf("SKIPPED: %s has no %s yet", onrecord.Folder, Data)
	}
	var r peers.Report
	require.NoError(t, onrecord.Read(root, Data, &r))
	v, err := newView(&r)
	require.NoError(t, err)
	require.True(t, v.Compared)
	for _, d := range v.Deficits {
		require.NotContains(t, d.Reason, unknown, "%s (%s): %s, best %s", d.Column, d.Setting, d.Ours, d.Best)
	}
}
