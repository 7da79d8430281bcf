package etcdpeer

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock returns client-go's own lock, a Lease object, whose requests go to etcd. read, which may be nil, is
// called with the holder that each read finds.
func (c *clientGoClient) lock(id string, read func(holder string)) *resourcelock.LeaseLock {
	return &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: "default", Name: c.cfg.Election},
		// client-go's own constructor of a lock sets this limit of a request.
		Client:     leases{etcd: c.etcd, limit: max(time.Second, c.periods.renew/2), read: read},
		LockConfig: resourcelock.ResourceLockConfig{Identity: id},
	}
}

// leases does for Lease objects what the API server does: an object is a key of etcd, and its resource
// version is the key's modification revision, which an update must name. A lock needs no other methods than
// these three.
type leases struct {
	coordinationv1client.LeaseInterface
	etcd      clientv3.KV
	limit     time.Duration
	read      func(holder string)
	namespace string
}

func (l leases) Leases(namespace string) coordinationv1client.LeaseInterface {
	l.namespace = namespace
	return l
}

func (l leases) key(name string) string { return "/registry/leases/" + l.namespace + "/" + name }

func (l leases) Get(ctx context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, l.limit)
	defer cancel()
	resp, err := l.etcd.Get(ctx, l.key(name))
	if err != nil {
		return nil, err
	}
	if len(resp.Kvs) == 0 {
		return nil, apierrors.NewNotFound(coordinationv1.Resource("leases"), name)
	}
	lease := &coordinationv1.Lease{}
	if err := json.Unmarshal(resp.Kvs[0].Value, lease); err != nil {
		return nil, err
	}
	lease.ResourceVersion = strconv.FormatInt(resp.Kvs[0].ModRevision, 10)
	if holder := lease.Spec.HolderIdentity; l.read != nil && holder != nil {
		l.read(*holder)
	}
	return lease, nil
}

func (l leases) Create(ctx context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return l.put(ctx, lease, 0, apierrors.NewAlreadyExists(coordinationv1.Resource("leases"), lease.Name))
}

func (l leases) Update(ctx context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	version, err := strconv.ParseInt(lease.ResourceVersion, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("the resource version: %w", err)
	}
	return l.put(ctx, lease, version, apierrors.NewConflict(coordinationv1.Resource("leases"), lease.Name, fmt.Errorf("it is not at version %d any more", version)))
}

// put writes the object if its key has this modification revision, 0 for no key; otherwise it returns refused.
func (l leases) put(ctx context.Context, lease *coordinationv1.Lease, version int64, refused error) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, l.limit)
	defer cancel()
	lease = lease.DeepCopy()
	lease.ResourceVersion = "" // etcd has it
	value, err := json.Marshal(lease)
	if err != nil {
		return nil, err
	}
	key := l.key(lease.Name)
	resp, err := l.etcd.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", version)).Then(clientv3.OpPut(key, string(value))).Commit()
	switch {
	case err != nil:
		return nil, err
	case !resp.Succeeded:
		return nil, refused
	}
	lease.ResourceVersion = strconv.FormatInt(resp.Header.Revision, 10)
	return lease, nil
}
