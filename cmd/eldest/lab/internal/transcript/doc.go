// Package transcript writes down what passed a wiretap, for people and for programs.
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
// That all of a message is in its text: long keys and values are cut, and of methods that no
// election uses only the fields are named. JSON has the whole message. That the normal form
// of a program which does things side by side is the same in each run: two requests that
// sometimes overlap and sometimes do not, or of which one sometimes sees what the other one
// wrote, differ in what they say.
//
// # The normal form
//
// Two runs of one scenario say the same in it. It leaves out times, numbers of calls and
// connections; the opening of streams, their end by the client, cancels of watches by the
// client and the answers to these, reports of progress; what is left of a lease's time;
// members, terms and sizes.
//
// It calls leases L1, L2, ... in the order in which they are heard of, in keys and values as
// well; the watches of each lane w1, w2, ...; and writes revisions as if the store had stood at
// r1 when the first message came.
//
// It folds the renewals of a lease into the first one, which stands directly after the grant,
// with the question to the cluster's majority that follows it, if one does. The same request
// that is lost again and again, because its lane is cut off, stands there once.
//
// It keeps together what belongs together: a request and its answer, and after these the
// events that it caused, by lane and watch. An event that nobody here caused stands where it
// came. So an answer may stand before what came earlier; but nothing stands before what it
// follows from. What remains is in the order in which it came, if one had ended before
// the other began, and else in that of the revisions, the lanes and the texts.
//
// One event is left out: that a candidate's own key is gone, told to the one who removed it.
// Whether it still listens is chance.
package transcript
