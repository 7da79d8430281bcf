// Package kv is a small key-value service for a leader-elected node: Put, Append, Delete, Get and
// List (kvpb.KV), kept in etcd. The leader serves it, in a tenure, and every access goes through
// the tenure's guard (G4): etcd refuses the writes of a deposed leader, and also its reads, so that
// no caller receives data that a successor has long changed.
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
// Replica is a copy of all the data, for reads at nodes that do not lead and callers that allow
// them (curator.Config.Reads). Its reads have no guard, and an age instead.
//
// A request that its caller sends twice may be carried out twice: a request ID is for one attempt,
// and the service records it but does not look for it. Records are never removed from the trail: it
// grows with every write, by as much as was written. It may be deleted if old evidence is not
// needed.
//
// # Where it is kept
//
//	/kv/<election>/data/<key>               the value
//	/kv/<election>/trail/<token>/<number>   a kvpb.Record
//
// The keys begin with a slash. The range of an election begins with its name, which is not empty
// and has no slash. So these keys are in no election's range.
//
// # The trail
//
// Each write is one guarded transaction that changes the data and adds a record: the request's ID, the
// request, and the token of the tenure that applied it. The record's create revision is the revision
// of the write. A tenure's first record, OPEN, is written by New, before any request is served. So
// etcd alone shows afterwards, to every reader, that
//
//   - a write was lost: it was acknowledged, and no record has its ID;
//   - it was applied twice: two records have its ID;
//   - a deposed leader applied it: a record with an older token has a later revision
//     than the OPEN of a newer one;
//   - another client wrote without the service: the data's mod revision is not that of the
//     last record of its key.
//
// # Errors
//
// A refusal by the guard, and the end of the tenure, are returned unchanged: the curator turns them
// into UNAVAILABLE with the details. Every other error is a gRPC status:
//
//	CANCELED, DEADLINE_EXCEEDED  the call ended before etcd answered; a write may have been applied
//	UNKNOWN                      a write may have been applied, for another reason
//	all others                   a refusal, with the service's code or etcd's: nothing was applied
package kv
