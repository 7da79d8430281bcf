package keys_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.etcd.io/etcd/client/v3/namespace"

	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
)

// TestKeysEqualThoseOfEtcdsElections has a candidate of etcd's own package campaign and compares
// its key, byte for byte, with the key of Eldest for the same lease.
func TestKeysEqualThoseOfEtcdsElections(t *testing.T) {
	cli := etcdtest.Shared(t).Client(t)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for _, election := range []string{"interop", "a\xffb", "\xff", "sp ace\x00nul"} {
		for _, want := range []clientv3.LeaseID{0, 0xa, 0x0123456789abcdef} {
			lease, err := cli.Grant(ctx, 600)
			if want != 0 {
				_, _ = cli.Revoke(ctx, want) // of the election before; does not exist at first
				lease, err = grant(ctx, cli, want)
			}
			require.NoError(t, err)
			session, err := concurrency.NewSession(cli, concurrency.WithLease(lease.ID), concurrency.WithContext(ctx))
			require.NoError(t, err)
			theirs := concurrency.NewElection(session, election)
			require.NoError(t, theirs.Campaign(ctx, "v"))

			require.Equal(t, keys.Candidate(election, int64(lease.ID)), theirs.Key())
			begin, end := keys.Range(election)
			resp, err := cli.Get(ctx, begin, clientv3.WithRange(end))
			require.NoError(t, err)
			require.Len(t, resp.Kvs, 1, "the range holds the candidate and nothing else")
			parsed, err := keys.Parse(election, string(resp.Kvs[0].Key))
			require.NoError(t, err)
			require.EqualValues(t, lease.ID, parsed)
			require.NoError(t, session.Close())
		}
	}
}

// TestDirectoryIsANamespace: a namespace replaces names with slashes, and the keys on the wire are
// those of etcd's election in that directory.
func TestDirectoryIsANamespace(t *testing.T) {
	cli := etcdtest.Shared(t).Client(t)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	session, err := concurrency.NewSession(cli, concurrency.WithTTL(60), concurrency.WithContext(ctx))
	require.NoError(t, err)
	defer func() { require.NoError(t, session.Close()) }()
	theirs := concurrency.NewElection(session, "/prod/svc")
	require.NoError(t, theirs.Campaign(ctx, "v"))

	begin, end := keys.Range("svc")
	resp, err := namespace.NewKV(cli, "/prod/").Get(ctx, begin, clientv3.WithRange(end))
	require.NoError(t, err)
	require.Len(t, resp.Kvs, 1)
	require.Equal(t, keys.Candidate("svc", int64(session.Lease())), string(resp.Kvs[0].Key))
}

// grant requests a lease with a given ID, for which the client has no method.
func grant(ctx context.Context, cli *clientv3.Client, id clientv3.LeaseID) (*clientv3.LeaseGrantResponse, error) {
	resp, err := pb.NewLeaseClient(cli.ActiveConnection()).LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: 600, ID: int64(id)})
	if err != nil {
		return nil, err
	}
	return &clientv3.LeaseGrantResponse{ID: clientv3.LeaseID(resp.ID), TTL: resp.TTL}, nil
}
