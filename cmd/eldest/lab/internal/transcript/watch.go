package transcript

import (
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// sayCreate formats the creation of a watch. name is "" until etcd has given it a number.
func sayCreate(r *etcdserverpb.WatchCreateRequest, name string, requireLeader bool, n names) []string {
	without := func(f etcdserverpb.WatchCreateRequest_FilterType) bool { return slices.Contains(r.Filters, f) }
	from := "from now on"
	if r.StartRevision > 0 {
		from = "from " + n.rev(r.StartRevision)
	}
	if name != "" {
		name += " "
	}
	return []string{list(name+span(r.Key, r.RangeEnd, n), from,
		when(without(etcdserverpb.WatchCreateRequest_NOPUT), "no puts"),
		when(without(etcdserverpb.WatchCreateRequest_NODELETE), "no deletions"),
		when(r.PrevKv, "with previous value"), when(r.ProgressNotify, "with progress"), when(r.Fragment, "in fragments"),
		when(requireLeader, "require leader"))}
}

// sayEvent formats one event.
func sayEvent(e *mvccpb.Event, n names) string {
	var text string
	if e.Type == mvccpb.Event_DELETE {
		text = "DELETE " + key(e.Kv.GetKey(), n) + " at " + n.rev(e.Kv.GetModRevision())
	} else {
		text = "PUT " + sayKey(e.Kv, n)
	}
	if e.PrevKv != nil {
		text += ", was " + sayKey(e.PrevKv, n)
	}
	return text
}

// sayWatch formats an answer of a watch that is no event.
func sayWatch(r *etcdserverpb.WatchResponse, name string, n names) []string {
	revision := r.Header.GetRevision()
	switch {
	case r.Canceled:
		why := r.CancelReason
		if r.CompactRevision > 0 {
			why = list(why, "compacted at "+n.rev(r.CompactRevision))
		}
		if why != "" {
			why = ": " + why
		}
		return []string{name + " canceled" + why}
	case r.Created:
		return []string{name + " created, " + n.rev(revision)}
	default:
		return []string{name + " progress, " + n.rev(revision)}
	}
}
