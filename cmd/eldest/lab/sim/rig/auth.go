package rig

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/authpb"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// Options are what a world can have that most do not.
type Options struct {
	// Tick is etcd's; 0 means 100 ms, its default. An election takes ten of them,
	// and the least TTL is fifteen. Long quiet runs are cheaper with fewer ticks.
	Tick time.Duration
	// Tokens, if not 0, turns authentication on, with tokens that expire after so
	// long without use, in whole seconds. The host named [Admin] may do everything,
	// all others may use Ranges and nothing else.
	Tokens time.Duration
	// Ranges are keys, from and to, that everybody may read and write.
	Ranges [][2]string
}

// Admin is the name of the host whose user may do everything.
const Admin = "admin"

// Who hosts are to the server where authentication is on.
const (
	root        = "root" // etcd's name for it
	participant = "participant"
	password    = "sesame"
)

// userOf returns who a host is.
func userOf(host string) string {
	if host == Admin {
		return root
	}
	return participant
}

// authenticate makes the users and turns authentication on.
func (s *Server) authenticate(ranges [][2]string) error {
	ctx := context.Background()
	for _, name := range []string{root, participant} {
		if _, err := s.etcd.UserAdd(ctx, &pb.AuthUserAddRequest{Name: name, Password: password}); err != nil {
			return fmt.Errorf("adding user %s: %w", name, err)
		}
		if _, err := s.etcd.RoleAdd(ctx, &pb.AuthRoleAddRequest{Name: name}); err != nil {
			return fmt.Errorf("adding role %s: %w", name, err)
		}
		if _, err := s.etcd.UserGrantRole(ctx, &pb.AuthUserGrantRoleRequest{User: name, Role: name}); err != nil {
			return fmt.Errorf("granting role %s: %w", name, err)
		}
	}
	for _, r := range ranges {
		may := &authpb.Permission{PermType: authpb.Permission_READWRITE, Key: []byte(r[0]), RangeEnd: []byte(r[1])}
		if _, err := s.etcd.RoleGrantPermission(ctx, &pb.AuthRoleGrantPermissionRequest{Name: participant, Perm: may}); err != nil {
			return fmt.Errorf("granting %s: %w", r, err)
		}
	}
	if _, err := s.etcd.AuthEnable(ctx, &pb.AuthEnableRequest{}); err != nil {
		return fmt.Errorf("turning authentication on: %w", err)
	}
	return nil
}
