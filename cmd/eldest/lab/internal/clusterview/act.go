package clusterview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/client/v3/namespace"
	"google.golang.org/grpc/codes"

	"github.com/eldest-io/eldest"
	"github.com/eldest-io/eldest/cmd/eldest/internal/cli"
	"github.com/eldest-io/eldest/cmd/eldest/internal/connect"
	"github.com/eldest-io/eldest/cmd/eldest/internal/operate"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
	"github.com/eldest-io/eldest/keys"
	"github.com/eldest-io/eldest/transfer"
)

// maxDone bounds the actions that Done returns.
const maxDone = 1000

// Do evicts a candidate, or transfers leadership to one. Everything else is refused, and all of it
// without Config.Write.
func (v *View) Do(ctx context.Context, a feed.Action) error {
	if err := a.Check(); err != nil {
		return feed.Refused("%s", err)
	}
	if a.Do == feed.Reset { // like Play, for the page it would be a beginning
		return feed.Refused("an existing cluster cannot be reset")
	}
	err := v.do(ctx, a)
	event := feed.Event{Type: feed.Acted, Action: &a}
	if err != nil {
		event.Error = err.Error()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	event = v.log.Add(event)
	if err == nil && len(v.done) < maxDone {
		v.done = append(v.done, feed.Step{AfterMS: event.AtMS - v.doneMS, Action: a})
		v.doneMS = event.AtMS
	}
	return err
}

// Done returns what was done.
func (v *View) Done() feed.Scenario {
	v.mu.Lock()
	defer v.mu.Unlock()
	return feed.Scenario{Steps: append([]feed.Step{}, v.done...)}
}

func (v *View) do(ctx context.Context, a feed.Action) error {
	directory, name := split(cmp.Or(a.Election, v.cfg.Election))
	invalid := keys.Check(name)
	switch {
	case a.Do != feed.Evict && a.Do != feed.Transfer:
		return feed.Refused("%s cannot be done to an existing cluster, only %s and %s", cli.Printable(a.Do), feed.Evict, feed.Transfer)
	case !v.cfg.Write:
		return feed.Refused("the cluster is only shown; start eldest lab with --write to change it")
	case invalid != nil:
		return feed.Refused("%s", connect.Because(invalid))
	case a.Key == "" || a.Token == 0:
		return feed.Refused("an action on a candidate needs its key and token")
	case v.cfg.Election != "" && directory+name != v.cfg.Election:
		return feed.Refused("only the election %s is shown", cli.Printable(v.cfg.Election))
	}
	t := target{transfer.Client(v.cfg.Client), directory, name, strings.TrimPrefix(a.Key, directory), eldest.Token(a.Token)}
	if directory != "" {
		t.Clients = transfer.Clients{KV: namespace.NewKV(v.cfg.Client, directory), Watcher: namespace.NewWatcher(v.cfg.Client, directory)}
	}
	if a.Do == feed.Evict {
		return v.evict(ctx, t)
	}
	return v.transfer(ctx, t)
}

// target is the candidate that an action is about. The clients are within the directory of its
// election, and the names without it.
type target struct {
	transfer.Clients
	directory, election, key string
	token                    eldest.Token
}

// evict deletes the candidate's key, as "eldest evict" does.
func (v *View) evict(ctx context.Context, t target) error {
	bounded, cancel := context.WithTimeout(ctx, 2*v.cfg.Conn.CommandTimeout)
	defer cancel()
	plan, err := operate.PlanRemoval(bounded, t.KV, t.election, t.key, "")
	if err == nil {
		plan.Token = t.token // that of the registration which the user has seen
		err = plan.CarryOut(bounded, t.KV)
		if errors.Is(err, eldest.ErrOutcomeUnknown) {
			return fmt.Errorf("%w; the key may have been removed nevertheless", v.explained(err))
		}
	}
	var coded *cli.CodedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &coded), errors.Is(err, operate.ErrReplaced):
		return feed.Refused("%s", connect.Because(err))
	}
	return v.explained(err)
}

// transfer hands leadership to the candidate, as "eldest transfer" does.
func (v *View) transfer(ctx context.Context, t target) error {
	options := transfer.Options{Timeout: transfer.DefaultTimeout, Drain: transfer.DefaultDrain, ShouldYield: operate.ShouldYield}
	once, cancel := context.WithTimeout(ctx, v.cfg.Conn.CommandTimeout)
	defer cancel()
	queue, err := transfer.Survey(once, t.KV, t.election)
	if err != nil {
		return v.explained(err)
	}
	var result transfer.Result
	plan, err := queue.Plan(t.key, options)
	if now := plan.Target.Token; err == nil && now != t.token {
		return feed.Refused("%s %w: it now has token %d, not %d; nothing was done", cli.Printable(t.key), operate.ErrReplaced, now, t.token)
	}
	if err == nil {
		bounded, cancel := context.WithTimeout(ctx, operate.Limit(plan, options, v.cfg.Conn.CommandTimeout))
		defer cancel()
		result, err = transfer.To(bounded, t.Clients, t.election, t.key, options)
	}
	refusal, isRefusal := errors.AsType[*transfer.Refusal](err)
	switch {
	case err == nil:
		return nil
	case isRefusal:
		text := connect.Because(err)
		if advice := operate.Advice(refusal, t.election); advice != "" {
			text += "; " + advice
		}
		if refusal.Unknown || len(result.Moved) > 0 { // something was done
			return errors.New(text)
		}
		return feed.Refused("%s", text)
	case errors.Is(err, transfer.ErrOvertaken):
		return fmt.Errorf("%s: the target left the queue meanwhile, or yielded to another candidate", connect.Because(err))
	case connect.Code(err) == codes.PermissionDenied:
		begin, _ := keys.RequestRange(t.election)
		return fmt.Errorf("%s; user %q needs a role that may read the election's keys and write those under %s",
			connect.Because(err), v.cfg.Conn.User, cli.Printable(v.cfg.Conn.Namespace+t.directory+begin))
	}
	return v.explained(err)
}

// explained adds to the failure of a request what the user can do about it.
func (v *View) explained(err error) error {
	return errors.New(v.plain.Replace(v.cfg.Conn.Advise(err).Error()))
}
