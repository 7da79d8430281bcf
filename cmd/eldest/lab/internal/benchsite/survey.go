package benchsite

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Facts is what a cluster says of itself. What it does not say is 0 or empty.
type Facts struct {
	Members int
	// Version is etcd's, that of the first member that answers.
	Version string
	// URLs are where the members say that clients reach them, one of each.
	URLs []string
}

// Survey asks a cluster about itself. It fails only if no endpoint answers at all: who
// may measure may not know everything.
func Survey(ctx context.Context, client *clientv3.Client) (Facts, error) {
	var facts Facts
	list, err := client.MemberList(ctx)
	if err == nil {
		facts.Members = len(list.Members)
		for _, m := range list.Members {
			if len(m.ClientURLs) > 0 {
				facts.URLs = append(facts.URLs, m.ClientURLs[0])
			}
		}
		if len(facts.URLs) < facts.Members {
			facts.URLs = nil // those of some would be sums of some
		}
	}
	errs := []error{err}
	for _, endpoint := range client.Endpoints() {
		status, err := client.Status(ctx, endpoint)
		if err == nil {
			facts.Version = status.Version
			break
		}
		errs = append(errs, err)
	}
	if facts.Members == 0 && facts.Version == "" {
		return Facts{}, errors.Join(errs...)
	}
	return facts, nil
}
