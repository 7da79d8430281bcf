package inject

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Cut holds what members say to all others, what those say to them, or both, until Mend.
// It blocks until something of each member was held back. Also after an error the members
// are to be mended.
func (f *Field) Cut(ctx context.Context, way etcdtest.Direction, members ...int) (err error) {
	before := make([]int64, len(members))
	for n, i := range members {
		if before[n], err = f.Held(i); err != nil {
			return err
		}
	}
	for _, i := range members {
		f.isCut(i, true)
		err = errors.Join(err, f.CutOneWay(i, way))
	}
	if err != nil {
		return err
	}
	held := make([]bool, len(members))
	return Eventually(ctx, fmt.Sprintf("that anything of members %v is held", members), func() (bool, error) {
		for n, i := range members {
			now, err := f.Held(i)
			if err != nil {
				return false, err
			}
			held[n] = held[n] || now > before[n]
		}
		return !slices.Contains(held, false), nil
	})
}

// Mend joins members to all others; those that are cut themselves stay cut. It may be
// called again.
func (f *Field) Mend(members ...int) (err error) {
	for _, i := range members {
		if once := f.Cluster.Mend(i); once != nil {
			err = errors.Join(err, once)
			continue
		}
		f.isCut(i, false)
	}
	return err
}

func (f *Field) isCut(member int, cut bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut[member] = cut
}

// Answers blocks until a question that takes a majority of the members is answered through
// a client, or, if want is false, until it is not answered within the given time.
func Answers(ctx context.Context, client *clientv3.Client, want bool, within time.Duration) error {
	what := "that etcd answers"
	if !want {
		what = "that etcd does not answer"
	}
	return Eventually(ctx, what, func() (bool, error) {
		end, ends := ctx.Deadline()
		short := ends && time.Until(end) < within // what is broken off is not unanswered
		once, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		_, err := client.Get(once, "majority?", clientv3.WithCountOnly())
		return (err == nil) == want && (err == nil || !short && ctx.Err() == nil), nil
	})
}
