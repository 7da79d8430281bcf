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
	if err == nil && len(v.done.Steps) < maxDone {
		v.done.Steps = append(v.done.Steps, feed.Step{AfterMS: event.AtMS - v.doneMS, Action: a})
		v.doneMS = event.AtMS
	}
	return err
}

// Done returns what was done.
func (v *View) Done() feed.Scenario {
	v.mu.Lock()
	defer v.mu.Unlock()
	return feed.Scenario{Name: v.done.Name, Steps: append([]feed.Step{}, v.done.Steps...)}
}

func (v *View) do(ctx context.Context, a feed.Action) error {
	if a.Do != feed.Evict && a.Do != feed.Transfer {
		return feed.Refused("%s cannot be done to an existing cluster, only %s and %s", cli.Printable(a.Do), feed.Evict, feed.Transfer)
	}
	if !v.cfg.Write {
		return feed.Refused("the cluster is only shown; start eldest lab with --write to change it")
	}
	directory, name := split(cmp.Or(a.Election, v.cfg.Election))
	if err := keys.Check(name); err != nil {
		return feed.Refused("%s", connect.Because(err))
	}
	if a.Key == "" || a.Token == 0 {
		return feed.Refused("an action on a candidate needs its key and token")
	}
	if v.cfg.Election != "" && (directory != "" || name != v.cfg.Election) {
		return feed.Refused("only the election %s is shown", cli.Printable(v.cfg.Election))
	}
	c := candidate{directory: directory, election: name, key: strings.TrimPrefix(a.Key, directory), token: eldest.Token(a.Token)}
	if a.Do == feed.Evict {
		return v.evict(ctx, c)
	}
	return v.transfer(ctx, c)
}

// candidate is whom an action is about: its election in a directory, and the key without the
// directory.
type candidate struct {
	directory, election, key string
	token                    eldest.Token
}

// clients are the clients within the directory.
func (v *View) clients(c candidate) transfer.Clients {
	if c.directory == "" {
		return transfer.Client(v.cfg.Client)
	}
	return transfer.Clients{KV: namespace.NewKV(v.cfg.Client, c.directory), Watcher: namespace.NewWatcher(v.cfg.Client, c.directory)}
}

// changed refuses an action on a registration that is not there any more.
func (c candidate) changed(token eldest.Token) error {
	if token == c.token {
		return nil
	}
	return feed.Refused("%s was registered again meanwhile: it now has token %d, not %d; nothing was done", cli.Printable(c.key), token, c.token)
}

// evict deletes the candidate's key, as "eldest evict" does.
func (v *View) evict(ctx context.Context, c candidate) error {
	bounded, cancel := context.WithTimeout(ctx, 2*v.cfg.Conn.CommandTimeout)
	defer cancel()
	kv := v.clients(c).KV
	plan, err := operate.PlanRemoval(bounded, kv, c.election, c.key, "")
	if err == nil {
		err = c.changed(plan.Token)
	}
	if err == nil {
		err = plan.CarryOut(bounded, kv)
		if err != nil && connect.Silent(err) {
			return fmt.Errorf("%w; the key may have been removed nevertheless", v.explained(err))
		}
	}
	var coded *cli.CodedError
	switch {
	case err == nil, errors.Is(err, feed.ErrRefused):
		return err
	case errors.As(err, &coded), errors.Is(err, operate.ErrReplaced):
		return feed.Refused("%s", connect.Because(err))
	}
	return v.explained(err)
}

// transfer hands leadership to the candidate, as "eldest transfer" does.
func (v *View) transfer(ctx context.Context, c candidate) error {
	options := transfer.Options{Timeout: transfer.DefaultTimeout, Drain: transfer.DefaultDrain, ShouldYield: operate.ShouldYield}
	once, cancel := context.WithTimeout(ctx, v.cfg.Conn.CommandTimeout)
	defer cancel()
	clients := v.clients(c)
	queue, err := transfer.Survey(once, clients.KV, c.election)
	if err != nil {
		return v.explained(err)
	}
	plan, err := queue.Plan(c.key, options)
	if err == nil {
		err = c.changed(plan.Target.Token)
	}
	if err == nil {
		bounded, cancel := context.WithTimeout(ctx, operate.Limit(plan, options, v.cfg.Conn.CommandTimeout))
		defer cancel()
		_, err = transfer.To(bounded, clients, c.election, c.key, options)
	}
	refusal, isRefusal := errors.AsType[*transfer.Refusal](err)
	switch {
	case err == nil, errors.Is(err, feed.ErrRefused):
		return err
	case isRefusal:
		text := connect.Because(err)
		if advice := operate.Advice(refusal, c.election); advice != "" {
			text += "; " + advice
		}
		if refusal.Unknown {
			return errors.New(text)
		}
		return feed.Refused("%s", text)
	case errors.Is(err, transfer.ErrOvertaken):
		return fmt.Errorf("%s: the target left the queue meanwhile, or yielded to another candidate", connect.Because(err))
	case connect.Code(err) == codes.PermissionDenied:
		begin, _ := keys.RequestRange(c.election)
		return fmt.Errorf("%s; user %q needs a role that may read the election's keys and write those under %s",
			connect.Because(err), v.cfg.Conn.User, cli.Printable(v.cfg.Conn.Namespace+c.directory+begin))
	}
	return v.explained(err)
}

// explained adds to the failure of a request what the user can do about it.
func (v *View) explained(err error) error {
	return errors.New(v.plain.Replace(v.cfg.Conn.Advise(err).Error()))
}
