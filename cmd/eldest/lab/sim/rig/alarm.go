package rig

import (
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// Full raises the alarm that etcd raises when its data outgrows its quota, or takes it
// back. While it is up, whatever needs space is refused; deletions, reads and
// renewals go on. It survives restarts.
func (s *Server) Full(full bool) error {
	s.mu.Lock()
	etcd := s.etcd
	s.mu.Unlock()
	if etcd == nil {
		return fmt.Errorf("the alarm: the server is down")
	}
	action := pb.AlarmRequest_DEACTIVATE
	if full {
		action = pb.AlarmRequest_ACTIVATE
	}
	_, err := etcd.Alarm(context.Background(), &pb.AlarmRequest{
		Action: action, MemberID: uint64(etcd.MemberID()), Alarm: pb.AlarmType_NOSPACE,
	})
	return err
}
