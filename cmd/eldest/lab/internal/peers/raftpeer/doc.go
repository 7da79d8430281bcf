// Package raftpeer elects by module hashicorp/raft: the participants are voters of a Raft group, and its
// leader is theirs. Each election is a group of its own: two participants, and an extra voter in a process
// that [System] starts, so that a majority is left when one participant fails.
//
// Participant 0 makes the group, alone, and adds the extra voter. The others ask the leader to add them, at
// a control address, which is a part of each voter's ID. The extra voter knows the leader.
//
// # Not guaranteed
//
// That one believes that it leads at most: a leader without a majority notices that after the leader lease
// only. What it appends meanwhile is not committed. That anything outlives the processes: logs are in memory.
package raftpeer
