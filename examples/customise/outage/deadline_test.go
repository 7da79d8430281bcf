package outage_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/elector"
	"github.com/eldest-io/eldest/electortest"
	"github.com/eldest-io/eldest/examples/customise/outage"
)

// Etcd does not answer the leader. Until the deadline its readings are fresh; after it, Stop refuses
// and ReadOnly answers with the old value. The next tenure has the value that was written meanwhile.
func TestDeadline(t *testing.T) {
	for name, manner := range map[string]outage.Manner{"stop": outage.Stop, "read-only": outage.ReadOnly} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := electortest.New(t)
				store := outage.New("limit", manner)
				e.Start(store.Lead, elector.WithTTL(10*time.Second))
				e.Win()
				e.Advance(0) // until Lead has read etcd
				require.NoError(t, store.Write(t.Context(), "one"))

				e.Disconnect()
				e.Advance(6 * time.Second)
				last := time.Now()
				r, err := store.Read()
				require.NoError(t, err)
				require.Equal(t, outage.Reading{Text: "one", Fresh: true, AsOf: last}, r)

				e.Advance(4 * time.Second)
				require.ErrorIs(t, e.Wait(), eldest.ErrSessionLost)
				require.ErrorIs(t, store.Write(t.Context(), "late"), eldest.ErrNotLeading)
				r, err = store.Read()
				if manner == outage.Stop {
					require.ErrorIs(t, err, eldest.ErrNotLeading)
				} else {
					require.NoError(t, err)
					require.Equal(t, outage.Reading{Text: "one", AsOf: last}, r)
				}

				_, err = e.Client().Put(t.Context(), "limit", "two") // by the other node
				require.NoError(t, err)
				e.Reconnect()
				e.Win()
				e.Advance(0)
				r, err = store.Read()
				require.NoError(t, err)
				require.Equal(t, "two", r.Text)
				require.True(t, r.Fresh)
			})
		})
	}
}
