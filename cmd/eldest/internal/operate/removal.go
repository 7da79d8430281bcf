package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/observe"
	"github.com/eldest-io/eldest/txn"
)

// Removal describes the removal of a candidate, as planned, and then as done. It is the object of
// "eldest evict --json".
type Removal struct {
	Election string       `json:"election"`
	Key      string       `json:"key"`
	Lease    string       `json:"lease"`
	Token    eldest.Token `json:"token"` // of the registration that may be removed
	Led      bool         `json:"led"`
	Removed  bool         `json:"removed"`
	Next     string       `json:"next,omitempty"` // the key behind that of the leader; "" if there is none

	Value []byte `json:"-"` // of the candidate
	Ahead int    `json:"-"` // the number of candidates before it in the queue
}

// ErrReplaced is wrapped by the error of CarryOut if the key belongs to another registration now.
var ErrReplaced = errors.New("was registered again meanwhile")

// PlanRemoval finds the candidate to remove: the leader if key is "", otherwise the one with the
// given key or lease. If there is none, the error has the exit code cli.ExitNobody.
func PlanRemoval(ctx context.Context, kv clientv3.KV, name, key, namespace string) (Removal, error) {
	queue, err := observe.Queue(ctx, kv, nil, name)
	if err != nil {
		return Removal{}, err
	}
	if len(queue) == 0 {
		return Removal{}, cli.Exit(cli.ExitNobody, fmt.Errorf("no candidate leads %s: the queue is empty, there is nothing to remove", cli.Printable(name)))
	}
	i := slices.IndexFunc(queue, func(e observe.Entry) bool { return key == "" || Names(key, e.Candidate, namespace) })
	if i < 0 {
		return Removal{}, cli.Exit(cli.ExitNobody, cli.Advise(fmt.Errorf("%s is not in the queue of %s", cli.Printable(key), cli.Printable(name)), "eldest list shows the candidates"))
	}
	found := queue[i].Candidate
	plan := Removal{
		Election: name, Key: found.Key, Lease: strconv.FormatInt(found.Lease, 16), Token: found.Token, Led: i == 0, Removed: true,
		Value: found.Value, Ahead: i,
	}
	if plan.Led && len(queue) > 1 {
		plan.Next = queue[1].Key
	}
	return plan, nil
}

// Names reports whether word, as the user gave it, is the key of c, with or without the namespace, or
// its lease.
func Names(word string, c eldest.Candidate, namespace string) bool {
	return word == c.Key || word == namespace+c.Key || strings.EqualFold(word, strconv.FormatInt(c.Lease, 16))
}

// CarryOut deletes the key in one transaction, if it still belongs to the registration of the plan.
// txn.Leave does the same for a candidate that leaves, but ignores a key that is already deleted;
// here that is reported: an error with the exit code cli.ExitNobody, or one that wraps ErrReplaced. On
// an error that wraps eldest.ErrOutcomeUnknown the key may have been deleted.
func (r Removal) CarryOut(ctx context.Context, kv clientv3.KV) error {
	guard := txn.Guard{Election: r.Election, Key: r.Key, Token: r.Token}
	resp, err := kv.Txn(ctx).
		If(guard.Compare()).
		Then(clientv3.OpDelete(guard.Key)).
		Else(clientv3.OpGet(guard.Key, clientv3.WithKeysOnly())).
		Commit()
	if err != nil || resp.Succeeded {
		return txn.Outcome(err)
	}
	// The comparison failed: the key is deleted, or another registration has created it again.
	found := resp.Responses[0].GetResponseRange().Kvs
	if len(found) == 0 {
		return cli.Exit(cli.ExitNobody, fmt.Errorf("%s has left the queue meanwhile; nothing was removed", cli.Printable(guard.Key)))
	}
	return fmt.Errorf("%s %w: it now has token %d, not %d; nothing was removed",
		cli.Printable(guard.Key), ErrReplaced, found[0].CreateRevision, guard.Token)
}
