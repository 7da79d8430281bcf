package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Fault is the name of a kind of fault.
type Fault string

// The faults, by group.
const (
	Skew Fault = "skew"

	ClientCut    Fault = "client-cut"
	ClientOneWay Fault = "client-one-way"
	BlackHole    Fault = "black-hole"
	Stall        Fault = "stall"
	Delay        Fault = "delay"
	LostReply    Fault = "lost-reply"

	MoveLeader Fault = "move-leader"
	Compact    Fault = "compact"
	Defragment Fault = "defragment"
	Revoke     Fault = "revoke"
	Delete     Fault = "delete"

	MemberKill    Fault = "member-kill"
	MemberStop    Fault = "member-stop"
	MemberRestart Fault = "member-restart"
	Replace       Fault = "replace"
	Cut           Fault = "cut"
	CutOneWay     Fault = "cut-one-way"
	CutLeader     Fault = "cut-leader"
	CutMinority   Fault = "cut-minority"
	CutMajority   Fault = "cut-majority"

	Kill   Fault = "kill"
	Stop   Fault = "stop"
	Resign Fault = "resign"
)

// group says what a fault is done to. Faults are struck in this order.
type group int

const (
	clocks group = iota
	networks
	hands
	members
	processes
)

// Info is what there is to say of a fault.
type Info struct {
	Fault Fault
	// Summary is one sentence for people.
	Summary string

	group group
	// lasts says that it is on for a while, until it is healed.
	lasts bool
}

var all = []Info{
	{Kill, "SIGKILL a participant; a new one takes its place when the round ends", processes, true},
	{Stop, "SIGSTOP a participant, often for longer than its lease lives, then let it go on", processes, true},
	{Resign, "have a participant leave by itself, and stand again", processes, false},
	{ClientCut, "reset a participant's connections to all members and refuse new ones", networks, true},
	{ClientOneWay, "lose all requests of a participant, or all replies to it", networks, true},
	{BlackHole, "swallow all that passes between a participant and one member, or all of them", networks, true},
	{Stall, "hold what a participant sends or is sent, and let it arrive, however late", networks, true},
	{Delay, "delay requests and replies of a participant, by less or more than its lease lives", networks, true},
	{LostReply, "carry out a request of a participant (a write, a registration, any) and lose the reply", networks, false},
	{Skew, "run a participant's clock too fast or too slow, within the margin of its lease", clocks, true},
	{MemberKill, "SIGKILL a member; restart it with its data when the round ends", members, true},
	{MemberStop, "SIGSTOP a member, then let it go on", members, true},
	{MemberRestart, "SIGKILL a member and restart it at once with its data", members, false},
	{Replace, "remove a member from the cluster and put a new one without data in its place", members, false},
	{Cut, "cut a member off from all others, both ways", members, true},
	{CutOneWay, "cut what a member says to the others, or what they say to it", members, true},
	{CutLeader, "cut off the member that leads etcd", members, true},
	{CutMinority, "cut off as many members as etcd can spare", members, true},
	{CutMajority, "cut off so many members that no majority is left", members, true},
	{MoveLeader, "hand etcd's own leadership to another member", hands, false},
	{Compact, "compact etcd's history up to now", hands, false},
	{Defragment, "defragment all members, one after another", hands, false},
	{Revoke, "revoke a candidate's lease by hand", hands, false},
	{Delete, "delete a candidate's key by hand", hands, false},
}

// All lists the faults in the order in which they are shown.
func All() []Info { return slices.Clone(all) }

// Names lists their names.
func Names() []Fault {
	var names []Fault
	for _, i := range all {
		names = append(names, i.Fault)
	}
	return names
}

// Parse reads names; none means all of them.
func Parse(names []string) ([]Fault, error) {
	var faults []Fault
	for _, name := range names {
		f := Fault(strings.TrimSpace(name))
		if !slices.Contains(Names(), f) {
			return nil, fmt.Errorf("no fault %q", name)
		}
		faults = append(faults, f)
	}
	if len(faults) == 0 {
		return Names(), nil
	}
	// What is drawn depends on the order, so there is one.
	return slices.DeleteFunc(Names(), func(f Fault) bool { return !slices.Contains(faults, f) }), nil
}

// NeedsPeers reports whether a fault takes a cluster of more than one member.
func NeedsPeers(f Fault) bool {
	switch f {
	case MoveLeader, Replace, Cut, CutOneWay, CutLeader, CutMinority, CutMajority:
		return true
	default:
		return false
	}
}

// NeedsClock reports whether a fault takes an election that reads a clock which can be
// given to it, as Eldest does. Etcd's package does not, and the API of the drop-in is etcd's.
func NeedsClock(f Fault) bool { return f == Skew }

func info(f Fault) Info {
	i := slices.IndexFunc(all, func(i Info) bool { return i.Fault == f })
	return all[i] // of a constant of this package
}
