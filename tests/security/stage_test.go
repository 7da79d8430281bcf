package security

import (
	"context"
	"crypto/tls"
	"errors"
	"sort"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/eldest-io/eldest/internal/etcdtest"
	"github.com/eldest-io/eldest/keys"
)

// fortress is an etcd with TLS, certificates of clients and authentication.
type fortress struct {
	t        *testing.T
	ca       *etcdtest.Authority
	endpoint string
	root     *clientv3.Client
}

// secret is the password of all users.
const secret = "secret"

// newFortress starts a fortress. tokens is etcd's --auth-token, life the lifetime of its simple
// tokens.
func newFortress(t *testing.T, tokens func(*etcdtest.Authority) string, life time.Duration) *fortress {
	t.Helper()
	f := &fortress{t: t, ca: etcdtest.NewAuthority(t)}
	f.endpoint = secured(t, f.ca, f.ca.Issue("server", "127.0.0.1"), map[string]any{
		"auth-token": tokens(f.ca), "auth-token-ttl": int(life / time.Second),
	})
	admin := f.client("", "admin")
	require.NoError(t, etcdtest.Err(admin.UserAdd(etcdtest.Context(t), "root", secret)))
	require.NoError(t, etcdtest.Err(admin.RoleAdd(etcdtest.Context(t), "root")))
	require.NoError(t, etcdtest.Err(admin.UserGrantRole(etcdtest.Context(t), "root", "root")))
	require.NoError(t, etcdtest.Err(admin.AuthEnable(etcdtest.Context(t))))
	f.root = f.client("root", "admin")
	return f
}

// secured starts an etcd that has a certificate and requires one of its clients. It returns the
// endpoint.
func secured(t *testing.T, ca *etcdtest.Authority, own tls.Certificate, settings map[string]any) string {
	t.Helper()
	cert, key := ca.Files(own)
	settings["client-transport-security"] = map[string]any{
		"cert-file": cert, "key-file": key, "trusted-ca-file": ca.File, "client-cert-auth": true,
	}
	return etcdtest.Start(t, etcdtest.Config{Settings: settings}).Endpoints()[0]
}

// simple are etcd's tokens whose lifetime is extended while they are used.
func simple(*etcdtest.Authority) string { return "simple" }

// signed are tokens with a fixed lifetime, however much they are used.
func signed(life time.Duration) func(*etcdtest.Authority) string {
	return func(a *etcdtest.Authority) string {
		cert, key := a.Files(a.Issue("tokens"))
		return strings.Join([]string{"jwt", "pub-key=" + cert, "priv-key=" + key, "sign-method=ES256", "ttl=" + life.String()}, ",")
	}
}

// client is a client with a certificate for a name, and a user's password unless the user is empty:
// then etcd takes the name for the user's.
func (f *fortress) client(user, name string, with ...func(*clientv3.Config)) *clientv3.Client {
	f.t.Helper()
	return f.clientOf(user, f.ca.Client(f.ca.Issue(name)), with...)
}

func (f *fortress) clientOf(user string, secured *tls.Config, with ...func(*clientv3.Config)) *clientv3.Client {
	f.t.Helper()
	cli, err := clientv3.New(f.config(user, secured, with...))
	require.NoError(f.t, err)
	f.t.Cleanup(func() { _ = cli.Close() })
	return cli
}

func (f *fortress) config(user string, secured *tls.Config, with ...func(*clientv3.Config)) clientv3.Config {
	cfg := clientv3.Config{Endpoints: []string{f.endpoint}, TLS: secured, Logger: zap.NewNop(), DialTimeout: etcdtest.Patience}
	if user != "" {
		cfg.Username, cfg.Password = user, secret
	}
	for _, change := range with {
		change(&cfg)
	}
	return cfg
}

// refusals makes a client count how often etcd answers that its token is invalid.
func refusals(n *atomic.Int64) func(*clientv3.Config) {
	return func(cfg *clientv3.Config) {
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithChainUnaryInterceptor(
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				err := invoke(ctx, method, req, reply, cc, opts...)
				if errors.Is(rpctypes.Error(err), rpctypes.ErrInvalidAuthToken) {
					n.Add(1)
				}
				return err
			}))
	}
}

// permission is a permission of a role: a range, or one key if to is empty.
type permission struct {
	from, to string
	may      clientv3.PermissionType
}

// The permissions of a role.
const (
	read      = clientv3.PermissionType(clientv3.PermRead)
	write     = clientv3.PermissionType(clientv3.PermWrite)
	readWrite = clientv3.PermissionType(clientv3.PermReadWrite)
)

// on is permission for exactly an election's range.
func on(election string, may clientv3.PermissionType) permission {
	begin, end := keys.Range(election)
	return permission{begin, end, may}
}

// user makes a user with a role of its own.
func (f *fortress) user(name string, permissions ...permission) {
	f.t.Helper()
	_, err := f.root.UserAdd(etcdtest.Context(f.t), name, secret)
	require.NoError(f.t, err)
	_, err = f.root.RoleAdd(etcdtest.Context(f.t), name)
	require.NoError(f.t, err)
	_, err = f.root.UserGrantRole(etcdtest.Context(f.t), name, name)
	require.NoError(f.t, err)
	f.grant(name, permissions...)
}

func (f *fortress) grant(name string, permissions ...permission) {
	f.t.Helper()
	for _, p := range permissions {
		_, err := f.root.RoleGrantPermission(etcdtest.Context(f.t), name, p.from, p.to, p.may)
		require.NoError(f.t, err)
	}
}

// contents is the whole content of etcd: of each key its create revision, its newest write and its
// lease; and the leases.
type contents struct {
	revision int64
	keys     []keyValue
	leases   []clientv3.LeaseID
}

type keyValue struct {
	key, value         string
	create, mod, lease int64
}

func (f *fortress) contents() contents {
	f.t.Helper()
	all, err := f.root.Get(etcdtest.Context(f.t), "\x00", clientv3.WithFromKey())
	require.NoError(f.t, err)
	c := contents{revision: all.Header.Revision}
	for _, kv := range all.Kvs {
		c.keys = append(c.keys, keyValue{string(kv.Key), string(kv.Value), kv.CreateRevision, kv.ModRevision, kv.Lease})
	}
	leases, err := f.root.Leases(etcdtest.Context(f.t))
	require.NoError(f.t, err)
	for _, l := range leases.Leases {
		c.leases = append(c.leases, l.ID)
	}
	sort.Slice(c.leases, func(i, j int) bool { return c.leases[i] < c.leases[j] })
	return c
}
