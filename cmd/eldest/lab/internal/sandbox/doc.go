// Package sandbox is what "eldest lab" shows if it is given no cluster: an etcd cluster of its own,
// participants that are processes, and everything that can be done to them. It implements
// feed.Source.
//
//	s, err := sandbox.Open(ctx, sandbox.Config{Members: 3, Executable: ..., ...})
//	if err != nil { ... }
//	defer s.Close()
//	err = s.Do(ctx, feed.Action{Do: feed.Kill, On: "p1"})
//
// # The pieces
//
//   - candidate.go has a participant: one process after another (package participant), with one name
//     and one network; process.go starts and ends the processes.
//   - network.go is its network: a wiretap for each member of etcd, so that a member that does not
//     answer concerns only a part of its requests, as it does without a wiretap. Each message becomes
//     events. The participant's state (a cut, a delay, a breakpoint) decides when it is passed on, and
//     whether.
//   - members.go, queue.go and, with an observer, sandbox.go look at etcd, directly, and report what has
//     changed.
//   - act.go has the table of the actions; those files and operator.go carry them out.
//   - play.go checks scenarios and plays them. era.go is the time between two beginnings, and has what
//     was done in it. A beginning ends all actions that are under way.
//
// # Actions
//
// Do blocks until the effect of an action was seen, for effectTime at most: a process has ended, the
// kernel reports that it is stopped, etcd answers that a key does not exist. An action that makes no
// sense now is refused, and changes nothing.
//
// # Times
//
// All times are those of this process. The reports of participants have the instants at which they
// were made; a message has the instant at which it reached the wiretap. An action's event is added
// when the action is over, with the time at which it began: so the times of a log are not sorted.
//
// # Not guaranteed
//
// A scenario that is played again does the same at about the same times. What the participants do
// then depends on the machine: a message that was released may not be there yet, or not any more.
//
// Events that a process has written shortly before it was killed may be read after the event that it
// is dead.
package sandbox
