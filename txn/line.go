package txn

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/keys"
)

// Line is a whole election as one linearizable read showed it.
type Line struct {
	// Revision is the etcd revision at which all of it was true.
	Revision int64
	// Queue are the candidates, oldest first, with their values.
	Queue []eldest.Candidate
	// Foreign are keys in the election's range that are not candidates.
	Foreign []string
	// Boxes are the mailboxes by lease; nil from ReadLine.
	Boxes map[int64]Box
}

// Box is a mailbox as one reply showed it; the zero value is one that is not there.
//
// Invariant: Mod is 0 if and only if there is none; it grows with each write.
type Box struct {
	// Value is what it holds.
	Value []byte
	// Mod and Created are the key's mod and create revisions.
	Mod, Created int64
	// Lease is what it is bound to.
	Lease int64
}

// ReadLine reads an election's queue with all values. One request, which costs the
// server a pass over the queue.
func ReadLine(ctx context.Context, kv clientv3.KV, election string) (Line, error) {
	resp, err := kv.Do(ctx, wholeLine(election))
	if err != nil {
		return Line{}, err
	}
	get := resp.Get()
	return lineOf(election, get.Kvs, get.Header.Revision), nil
}

// Survey reads an election's queue and its mailboxes, at one revision, in one request.
func Survey(ctx context.Context, kv clientv3.KV, election string) (Line, error) {
	begin, end := keys.MailboxRange(election)
	resp, err := kv.Txn(ctx).Then(wholeLine(election), clientv3.OpGet(begin, clientv3.WithRange(end))).Commit()
	if err != nil {
		return Line{}, err
	}
	line := lineOf(election, resp.Responses[0].GetResponseRange().Kvs, resp.Header.Revision)
	line.Boxes = make(map[int64]Box)
	for _, kv := range resp.Responses[1].GetResponseRange().Kvs {
		if lease, err := keys.ParseMailbox(election, string(kv.Key)); err == nil {
			line.Boxes[lease] = BoxOf(kv)
		}
	}
	return line, nil
}

// BoxOf returns what a reply or an event shows of a mailbox; nil is one that is not there.
func BoxOf(kv *mvccpb.KeyValue) Box {
	if kv == nil {
		return Box{}
	}
	return Box{Value: kv.Value, Mod: kv.ModRevision, Created: kv.CreateRevision, Lease: kv.Lease}
}

func wholeLine(election string) clientv3.Op {
	begin, end := keys.Range(election)
	return clientv3.OpGet(begin, clientv3.WithRange(end), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
}

func lineOf(election string, oldestFirst []*mvccpb.KeyValue, revision int64) Line {
	line := Line{Revision: revision}
	for _, kv := range oldestFirst {
		key := string(kv.Key)
		lease, err := keys.Parse(election, key)
		if err != nil {
			line.Foreign = append(line.Foreign, key)
			continue
		}
		line.Queue = append(line.Queue, eldest.Candidate{
			Key: key, Lease: lease, Token: eldest.Token(kv.CreateRevision), ModRevision: kv.ModRevision, Value: kv.Value,
		})
	}
	return line
}
