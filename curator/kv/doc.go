// Package kv is a small key-value service for a leader-elected node: Put, Append,
// Delete, Get and List (kvpb.KV), kept in etcd. It is served by whoever leads, in a
// tenure, and every access goes through the tenure's guard (G4): a write of a leader
// that was deposed is refused by etcd, and so is a read, so that nobody is told what a
// successor has long changed.
//
//	curator.Config{
//		Services: func(ctx context.Context, l *elector.Leadership, r grpc.ServiceRegistrar) error {
//			server, err := kv.New(ctx, l)
//			if err != nil {
//				return err
//			}
//			kvpb.RegisterKVServer(r, server)
//			return nil
//		},
//		// ...
//	}
//
// Replica is a copy of all the data, for reads at nodes that do not lead and callers that
// allow them (curator.Config.Reads). Its reads have no guard, and an age instead.
//
// Not guaranteed: that a request is carried out at most once if its caller sends it
// twice. A request id is for one attempt, and the service records it and does not look
// for it. Nor is anything ever removed from the trail: it grows with every write, by
// as much as was written. Whoever needs no evidence of long ago deletes it.
//
// # Where it is kept
//
//	/kv/<election>/data/<key>               the value
//	/kv/<election>/trail/<token>/<number>   a kvpb.Record
//
// The keys begin with a slash: what follows the name of an election is its range, and
// no election has an empty name. So these keys are in nobody's range.
//
// # The trail
//
// Each write is one transaction, guarded, that changes the data and adds a record: the
// request's id, what it asked for, and the token of the tenure that applied it. The
// record's create revision is the revision of the write. A tenure's first record, OPEN,
// is written by New, before any request is served. So etcd alone shows, afterwards and
// to everybody:
//
//   - a write was lost: it was acknowledged, and no record has its id;
//   - it was applied twice: two records have its id;
//   - a deposed leader applied it: a record with an older token has a later revision
//     than the OPEN of a newer one;
//   - somebody wrote past the service: the data's mod revision is not that of the last
//     record of its key.
//
// # Errors
//
// A refusal by the guard, and the end of the tenure, are returned as they are, for the
// curator to make an UNAVAILABLE of with the details. All else is a gRPC status, of
// etcd's code where etcd refused; UNKNOWN where a write may have been applied.
package kv
