package sandbox

import (
	"slices"

	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/chaos/participant"
	"github.com/eldest-io/eldest/cmd/eldest/lab/internal/feed"
)

// ours are the kinds that are this project.
var ours = []feed.Kind{feed.Eldest, feed.Heartbeats, feed.Keeper}

// rules are the rules that can be taken out, in the order in which the page offers them.
var rules = []feed.Rule{
	{
		Name:  participant.Deadline,
		Text:  "It goes on being certain that it leads after its deadline, for two times the TTL.",
		Kinds: ours,
	},
	{
		Name:  participant.Guard,
		Text:  "It writes without comparing its token: its writes are not guarded.",
		Kinds: feed.Kinds,
	},
	{
		Name:  participant.Owner,
		Text:  "After a tenure it leaves a key in the queue that no candidate owns, on a lease of ten minutes.",
		Kinds: ours,
	},
	{
		Name:  participant.Majority,
		Text:  "It counts a renewal of its lease that no majority of etcd's members has confirmed.",
		Kinds: ours,
	},
	{
		Name:  participant.Clock,
		Text:  "Its clock runs at half the speed, so that its deadline comes too late.",
		Kinds: ours,
	},
}

// checkRule refuses a rule that cannot be taken out, or not of a kind. "" is all rules, or any kind.
func checkRule(name string, kind feed.Kind) error {
	if name == "" {
		return nil
	}
	i := slices.IndexFunc(rules, func(r feed.Rule) bool { return r.Name == name })
	switch {
	case i < 0:
		return feed.Refused("unknown rule %.64q", name)
	case kind != "" && !slices.Contains(rules[i].Kinds, kind):
		return feed.Refused("the rule %s cannot be taken out of a participant of the kind %s", name, kind)
	}
	return nil
}
