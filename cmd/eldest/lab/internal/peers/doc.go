// Package peers measures leader elections of several systems side by side, on one machine, in one run:
// how long a leader is replaced, what two leaders can do at a time, and what an election costs at rest.
//
// # How a run works
//
// For each set of settings ([peer.SettingNames]), [Run] starts the servers of all systems, measures all
// scenarios ([Scenarios]) round by round, and ends the servers. In each round the systems take their turns
// in a random order. A turn has an election of its own, whose name no other
// turn has, and participants that are processes of their own (see [Participate]): they can be killed,
// stopped and disconnected as the processes of users can.
//
// Times of a few milliseconds are measured without another fault beside them: in the 300 ms after a fault, or the
// second after a resignation, no other one takes place, unless the successor has won. Longer waits of different
// systems overlap, because leases of a minute would otherwise take hours: after a fault the successors
// of earlier ones may win, append entries for some hundred milliseconds, and be compared with the old leaders.
// The scenarios fanout, join, memory and store-leader have one turn at a time. The turns of rest run
// all at once: they only count.
//
// All times are of the wall clock of this machine, which all processes share: a participant reports when
// it has won, and the run subtracts the time of the fault, which it reads just before the fault.
//
// # Networks
//
// The connections of a participant are made by its [Network], which can be cut: then nothing that it sends
// leaves, nothing that others send arrives, and its kernel acknowledges nothing (a filter at each
// socket drops everything). So the other side sees what it sees of a machine without power.
//
// # Not guaranteed
//
// That a leader keeps its leadership until the fault: on a busy machine short timeouts may pass. A round
// in which that happens while others are set up is repeated once, then it is an error. The report counts
// all such leaders ([Unprovoked]).
//
// That no file remains of a run that is killed: the next run in the same place removes it.
//
// That all systems have the same processor time: the servers of all systems run at once, idle unless it is
// their turn. That times of different machines can be compared. Networks can be cut on Linux only;
// elsewhere the scenarios that need it are reported as lacking.
package peers
