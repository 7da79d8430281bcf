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
	// draw draws the details, after those that all faults of the group have; nil means none.
	draw func(drawer, *Injection)
	// inject injects the fault and blocks until its effect was seen or ctx ends. It returns the
	// target, and the healer if there is one, also with an error.
	inject injector
}

// injector is a function that injects a fault: see kind.inject. heal blocks until the fault is over
// or ctx ends. It may be called again after an error and after a success.
type injector func(ctx context.Context, s *series, in Injection) (on string, heal healer, err error)

type healer func(ctx context.Context) error

// Kinds are all faults, in the order in which they are shown.
var Kinds = []kind{
	{Kill, "SIGKILL a participant; a new one takes its place when the round ends", processes, true, false, nil, ofParticipant(kill)},
	{Stop, "SIGSTOP a participant, often for longer than its TTL, then SIGCONT", processes, true, false, nil, ofParticipant(stop)},
	{Resign, "make a participant resign or withdraw, and campaign again", processes, false, false, nil, ofParticipant(resign)},
	{"client-cut", "reset a participant's connections to all members and refuse new ones", networks, true, false, nil, clientCut},
	{"client-one-way", "lose all requests of a participant, or all replies to it", networks, true, false, drawer.oneWay, clientOneWay},
	{BlackHole, "drop all traffic between a participant and one member, or all members", networks, true, false, drawer.all, blackHole},
	{"stall", "hold a participant's requests, the replies to it, or both, and deliver them late", networks, true, false, drawer.anyWay, stall},
	{Delay, "delay requests and replies of a participant, by less or more than its TTL", networks, true, false, drawer.delays, delay},
	{LostReply, "carry out a request of a participant (a write, a registration, any) and lose the reply", networks, false, false, drawer.reply, ofParticipant(lostReply)},
	{Skew, "run a participant's clock too fast or too slow, within the margin of its lease", clocks, true, false, drawer.rate, ofParticipant(skew)},
	{"member-kill", "SIGKILL a member; restart it with its data when the round ends", members, true, false, nil, ofMember("kill", memberKill)},
	{"member-stop", "SIGSTOP a member, then SIGCONT", members, true, false, nil, ofMember("stop", memberStop)},
	{"member-restart", "SIGKILL a member and restart it at once with its data", members, false, false, nil, ofMember("restart", memberRestart)},
	{"replace", "remove a member from the cluster and put a new one without data in its place", members, false, true, nil, ofMember("replace", replace)},
	{"cut", "partition a member from all others, both ways", members, true, true, nil, cut(theOne)},
	{CutOneWay, "block what a member sends to the others, or what they send to it", members, true, true, drawer.oneWay, cut(theOne)},
	{CutLeader, "partition the member that leads etcd", members, true, true, drawer.leader, cut(theOne)},
	{"cut-minority", "partition as many members as etcd tolerates", members, true, true, nil, cut(some(func(size int) int { return (size - 1) / 2 }))},
	{"cut-majority", "partition a majority of the members", members, true, true, nil, mute(cut(some(func(size int) int { return size/2 + 1 })))},
	{MoveLeader, "transfer etcd's own leadership to another member", operators, false, true, nil, moveLeader},
	{Compact, "compact etcd's history up to now", operators, false, false, nil, compact},
	{"defragment", "defragment all members, one after another", operators, false, false, nil, defragment},
	{Revoke, "revoke a candidate's lease by hand", operators, false, false, drawer.participant, revoke},
	{Delete, "delete a candidate's key by hand", operators, false, false, drawer.participant, remove},
	{Silence, "SIGSTOP a leader with heartbeats, or its successor, for three of their timeouts", processes, true, false, drawer.front, ofParticipant(stop)},
	{KillBoth, "SIGKILL a participant and its keeper", processes, true, false, nil, ofParticipant(killBoth)},
	{KillKeeper, "SIGKILL a participant's keeper, and later the participant", processes, true, false, nil, ofParticipant(killKeeper)},
	{CompactHeld, "hold all that etcd sends to a successor with heartbeats, and compact etcd's history meanwhile", operators, true, false, drawer.successor, ofParticipant(compactHeld)},
	{EtcdKill, "SIGKILL the member that leads etcd; restart it with its data when the round ends", members, true, true, drawer.leader, ofMember("kill", memberKill)},
	{EtcdStop, "SIGSTOP the member that leads etcd, then SIGCONT", members, true, true, drawer.leader, ofMember("stop", memberStop)},
}

// ofEldest are the faults of what only the participants of Eldest have: heartbeats, keepers, and a clock
// that can be injected.
var ofEldest = []Fault{Skew, Silence, KillBoth, KillKeeper, CompactHeld, EtcdKill, EtcdStop}

// fitFor are the faults that not every participant can have, and those which can.
var fitFor = map[Fault]func(*candidate) bool{Silence: beats, CompactHeld: beats, KillBoth: hasKeeper, KillKeeper: hasKeeper}

// NamesFor lists the faults that apply to a contender.
func NamesFor(name string) []Fault {
	return slices.DeleteFunc(Names(), func(f Fault) bool { return name != contender.Eldest && slices.Contains(ofEldest, f) })
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
