// Package transcript formats what passed a wiretap, as text and as JSON.
//
//	var live transcript.Live
//	for _, e := range live.Entries(message) { // as it comes
//		fmt.Println(e.Line())
//	}
//	entries := transcript.Normalise(messages) // or all of it, at the end
//	err := transcript.Print(os.Stdout, entries)
//
// # Not guaranteed
//
// The text of a message may be incomplete: long keys and values are shortened, and of methods that
// no election uses only the fields are named. JSON has the whole message. The normal form of a
// program with concurrent requests may differ from run to run: two requests that only sometimes
// overlap, or of which one only sometimes reads what the other one wrote, have different messages.
//
// # The normal form
//
// Two runs of one scenario have the same normal form. It omits times, numbers of calls and
// connections; the opening of streams, their end by the client, cancels of watches by the client
// and the answers to these, progress notifications; what is left of a lease's time; members, terms
// and sizes.
//
// It names leases L1, L2, ... in the order in which they first occur, in keys and values as well;
// the watches of each lane w1, w2, ...; and it writes revisions as if the store had been at r1 when
// the first message came.
//
// It merges the renewals of a lease into the first one, which is directly after the grant, with the
// request to the cluster's majority that follows it, if there is one. A request that is lost again
// and again, because its lane is partitioned, occurs once.
//
// It keeps related messages together: a request and its answer, and after these the events that it
// caused, by lane and watch. An event that no recorded request caused keeps its position. So an
// answer may come before earlier messages, but no message comes before its cause. The rest is in
// the order in which it came, if one message had ended before the other began, and otherwise in the
// order of the revisions (first the request that made the revision), the lanes and the texts.
//
// One event is omitted: the deletion of a candidate's own key, received by the candidate that
// deleted it. Whether its watch still exists depends on chance. So does whether a member can
// already answer a read at the revision of an event; a read that it refused is omitted if it was
// repeated and answered.
package transcript
