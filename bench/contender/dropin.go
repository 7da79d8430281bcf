package contender

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/compat/concurrency"
)

// dropIn is this project's package with the API of etcd's, made of the same steps as Ours.
var dropIn = api{DropIn, func(client *clientv3.Client, seconds int, life context.Context) (apiSession, newElection, error) {
	s, err := concurrency.NewSession(client, concurrency.WithTTL(seconds), concurrency.WithContext(life))
	return s, func(name string) apiElection { return concurrency.NewElection(s, name) }, err
}}
