package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/eldest-io/eldest/bench/contender"
)

// Fault is the name of a kind of fault.
type Fault string

// The faults that are referred to by name.
const (
	Skew       Fault = "skew"
	Delay      Fault = "delay"
	BlackHole  Fault = "black-hole"
	LostReply  Fault = "lost-reply"
	MoveLeader Fault = "move-leader"
	Compact    Fault = "compact"
	Revoke     Fault = "revoke"
	Delete     Fault = "delete"
	CutOneWay  Fault = "cut-one-way"
	CutLeader  Fault = "cut-leader"
	Kill       Fault = "kill"
	Stop       Fault = "stop"
	Resign     Fault = "resign"

	// Faults of heartbeats and keepers.
	Silence     Fault = "silence"
	KillBoth    Fault = "kill-both"
	KillKeeper  Fault = "keeper-kill"
	CompactHeld Fault = "compact-held"
	EtcdKill    Fault = "etcd-leader-kill"
	EtcdStop    Fault = "etcd-leader-stop"
)

// group is what a fault affects. The faults of a round are injected in this order: first the
// network of a participant, because the effect of a network fault shows only in traffic, which
// later faults may end; then an operator's requests to etcd, which need a majority; then the
// members; then the participant's process.
type group int

const (
	clocks group = iota
	networks
	operators
	members
	processes
)

// kind describes a fault.
type kind struct {
	Fault Fault
	// Summary is one sentence for help texts.
	Summary string

	group group
	// lasts means that the fault is active until it is healed.
	lasts bool
	// peers means that it requires a cluster of more than one member.
	peers bool
	// needs is what only Eldest's participants have, and the fault is for; "" means that it applies to all.
	needs string
	// draw draws the details, after those that all faults of the group have; nil means none.
	draw func(drawer, *Injection)

	// One of these injects the fault, and blocks until its effect was seen or ctx ends. It returns the
	// healer, if there is one, also with an error. of injects it into a participant that has the role and that
	// fits (nil: each does); on chooses the target, and returns it.
	of   func(ctx context.Context, s *series, c *candidate, in Injection) (healer, error)
	fits func(*candidate) bool
	on   func(ctx context.Context, s *series, in Injection) (target string, heal healer, err error)
}

// healer blocks until a fault is over, or ctx ends. It may be called again after an error and after a
// success.
type healer func(ctx context.Context) error

// What only the participants of Eldest have.
const (
	beating = "heartbeats"
	kept    = "a keeper"
	clocked = "a clock that can be injected"
)

// Kinds are all faults, in the order in which they are shown.
var Kinds = []kind{
	{Fault: Kill, Summary: "SIGKILL a participant; a new one takes its place when the round ends", group: processes, lasts: true, of: kill},
	{Fault: Stop, Summary: "SIGSTOP a participant, often for longer than its TTL, then SIGCONT", group: processes, lasts: true, of: stop},
	{Fault: Resign, Summary: "make a participant resign or withdraw, and campaign again", group: processes, of: resign},
	{Fault: "client-cut", Summary: "reset a participant's connections to all members and refuse new ones", group: networks, lasts: true, of: clientCut},
	{Fault: "client-one-way", Summary: "lose all requests of a participant, or all replies to it", group: networks, lasts: true, draw: drawer.oneWay, of: clientOneWay},
	{Fault: BlackHole, Summary: "drop all traffic between a participant and one member, or all members", group: networks, lasts: true, draw: drawer.all, of: blackHole},
	{Fault: "stall", Summary: "hold a participant's requests, the replies to it, or both, and deliver them late", group: networks, lasts: true, draw: drawer.anyWay, of: stall},
	{Fault: Delay, Summary: "delay requests and replies of a participant, by less or more than its TTL", group: networks, lasts: true, draw: drawer.delays, of: delay},
	{Fault: LostReply, Summary: "carry out a request of a participant (a write, a registration, any) and lose the reply", group: networks, draw: drawer.reply, of: lostReply},
	{Fault: Skew, Summary: "run a participant's clock too fast or too slow, within the margin of its lease", group: clocks, lasts: true, needs: clocked, draw: drawer.rate, of: skew, fits: hasMargin},
	{Fault: "member-kill", Summary: "SIGKILL a member; restart it with its data when the round ends", group: members, lasts: true, on: memberKill},
	{Fault: "member-stop", Summary: "SIGSTOP a member, then SIGCONT", group: members, lasts: true, on: memberStop},
	{Fault: "member-restart", Summary: "SIGKILL a member and restart it at once with its data", group: members, on: memberRestart},
	{Fault: "replace", Summary: "remove a member from the cluster and put a new one without data in its place", group: members, peers: true, on: replace},
	{Fault: "cut", Summary: "partition a member from all others, both ways", group: members, lasts: true, peers: true, on: cut},
	{Fault: CutOneWay, Summary: "block what a member sends to the others, or what they send to it", group: members, lasts: true, peers: true, draw: drawer.oneWay, on: cut},
	{Fault: CutLeader, Summary: "partition the member that leads etcd", group: members, lasts: true, peers: true, draw: drawer.leader, on: cut},
	{Fault: "cut-minority", Summary: "partition as many members as etcd tolerates", group: members, lasts: true, peers: true, on: cutMinority},
	{Fault: "cut-majority", Summary: "partition a majority of the members", group: members, lasts: true, peers: true, on: cutMajority},
	{Fault: MoveLeader, Summary: "transfer etcd's own leadership to another member", group: operators, peers: true, on: moveLeader},
	{Fault: Compact, Summary: "compact etcd's history up to now", group: operators, on: compact},
	{Fault: "defragment", Summary: "defragment all members, one after another", group: operators, on: defragment},
	{Fault: Revoke, Summary: "revoke a candidate's lease by hand", group: operators, draw: drawer.participant, of: revoke},
	{Fault: Delete, Summary: "delete a candidate's key by hand", group: operators, draw: drawer.participant, of: remove},
	{Fault: Silence, Summary: "SIGSTOP a leader with heartbeats, or its successor, for three of their timeouts", group: processes, lasts: true, needs: beating, draw: drawer.front, of: stop, fits: beats},
	{Fault: KillBoth, Summary: "SIGKILL a participant and its keeper", group: processes, lasts: true, needs: kept, of: killBoth, fits: hasKeeper},
	{Fault: KillKeeper, Summary: "SIGKILL a participant's keeper, and later the participant", group: processes, lasts: true, needs: kept, of: killKeeper, fits: hasKeeper},
	{Fault: CompactHeld, Summary: "hold all that etcd sends to a successor with heartbeats, and compact etcd's history meanwhile", group: operators, lasts: true, needs: beating, draw: drawer.successor, of: compactHeld, fits: beats},
	{Fault: EtcdKill, Summary: "SIGKILL the member that leads etcd; restart it with its data when the round ends", group: members, lasts: true, peers: true, needs: beating, draw: drawer.leader, on: memberKill},
	{Fault: EtcdStop, Summary: "SIGSTOP the member that leads etcd, then SIGCONT", group: members, lasts: true, peers: true, needs: beating, draw: drawer.leader, on: memberStop},
}

// NamesFor lists the faults that apply to a contender.
func NamesFor(name string) []Fault {
	return slices.DeleteFunc(Names(), func(f Fault) bool { return name != contender.Eldest && kindOf(f).needs != "" })
}

// Names lists the names of all faults.
func Names() []Fault {
	var names []Fault
	for _, k := range Kinds {
		names = append(names, k.Fault)
	}
	return names
}

// Parse parses names; no names mean all faults that apply to a contender.
func Parse(names []string, of string) ([]Fault, error) {
	var faults []Fault
	for _, name := range names {
		f := Fault(strings.TrimSpace(name))
		if !slices.Contains(Names(), f) {
			return nil, fmt.Errorf("unknown fault %q", name)
		}
		faults = append(faults, f)
	}
	if len(faults) == 0 {
		return NamesFor(of), nil
	}
	// The draws depend on the order, so the order is fixed.
	return slices.DeleteFunc(Names(), func(f Fault) bool { return !slices.Contains(faults, f) }), nil
}

// NeedsPeers reports whether a fault requires a cluster of more than one member.
func NeedsPeers(f Fault) bool { return kindOf(f).peers }

func kindOf(f Fault) kind {
	return Kinds[slices.IndexFunc(Kinds, func(k kind) bool { return k.Fault == f })] // every fault is in Kinds
}
