package regressions

import (
	"cmp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/eldest-io/eldest/internal/electiontest"
	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
)

// Row 43. A waiter is behind so many keys that one read for each of them, or one answer with all of
// them, is more than etcd allows. In other implementations the campaign ends with "too many
// operations in txn request". In Eldest the waiter waits for one predecessor after the other.
//
// Fails when a position keeps more older candidates than an answer was requested for, when all keys
// of a queue are read at once, and when etcd's refusal of a large transaction ends the campaign.
func TestRegression43_LimitsOfTheServer(t *testing.T) {
	t.Parallel()
	for name, stage := range map[string]struct{ ops, elders, foreign int }{
		"a long queue behind foreign keys": {elders: 140, foreign: 40},
		"more elders than are known":       {elders: 20, foreign: 40},
		"few operations in a transaction":  {ops: 8, elders: 16},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := etcdtest.Start(t, etcdtest.Config{Settings: map[string]any{"max-txn-ops": cmp.Or(stage.ops, 128)}})
			admin, name := c.Client(t), strings.ReplaceAll(etcdtest.Election(t), " ", "-")
			put := func(key string) string {
				require.NoError(t, etcdtest.Err(admin.Put(etcdtest.Context(t), key, "")))
				return key
			}
			var elders []string
			for i := range stage.elders {
				elders = append(elders, put(keys.Candidate(name, int64(i+1))))
			}
			for i := range stage.foreign {
				put(keys.Prefix(name) + "foreign" + itoa(i))
			}
			var rec etcdtest.Recorder
			p := join(t, c.Client(t, rec.Attach), name)
			result := p.Queue(t)
			for i := range 3 {
				nearest := elders[len(elders)-1-i]
				select {
				case e := <-p.Waiting:
					require.Equal(t, nearest, e.Predecessor.Key)
				case o := <-result:
					require.NoError(t, o.Reason, "a campaign that must go on")
				case <-etcdtest.Context(t).Done():
					require.Fail(t, "not in time: its next predecessor")
				}
				require.NoError(t, etcdtest.Err(admin.Delete(etcdtest.Context(t), nearest)))
			}
			for _, elder := range elders {
				require.NoError(t, etcdtest.Err(admin.Delete(etcdtest.Context(t), elder)))
			}
			electiontest.Wins(t, result)
			for _, call := range rec.Calls("Txn") {
				ops := call.Request.(*etcdserverpb.TxnRequest).Success
				require.LessOrEqual(t, len(ops), 17, "one question for each of a long queue")
				for _, op := range ops {
					if r := op.GetRequestRange(); r != nil && len(r.RangeEnd) > 0 {
						require.Contains(t, []int64{16, 17, 32, 64}, r.Limit, "the whole queue in one answer")
					}
				}
			}
		})
	}
}
