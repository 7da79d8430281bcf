//go:build !linux

package keeper

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func start([]byte) (*Keeper, chan error, error) {
	return nil, nil, fmt.Errorf("%w: a keeper needs Linux's pidfd", errors.ErrUnsupported)
}

func silence() {}

func serve(string, func(context.Context, []byte) (*clientv3.Client, error)) error {
	return fmt.Errorf("%w: a keeper needs Linux's pidfd", errors.ErrUnsupported)
}
