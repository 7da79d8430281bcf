package inject

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/eldest-io/eldest/internal/etcdtest"
)

// Cut holds what members send to all others, what those send to them, or both, until Mend.
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
	return Until(ctx, fmt.Sprintf("that anything of members %v is held", members), func(context.Context) (bool, error) {
		for n, i := range members {
			now, err := f.Held(i)
			if err != nil {
				return true, err
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
