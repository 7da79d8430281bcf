// Command modeltrace draws a trace of a model of docs/model as a sequence diagram. It reads the
// lines that a replayed trail prints and writes SVG.
//
// It is made for short traces of a dozen or two steps, such as docs/model/check picks. Not
// guaranteed: that a longer trace is drawn well.
//
// # Lines
//
// Each line has "~", a participant (c0, c1, ... for candidates, etcd, outside) and a step:
//
//	~ c0 begin key            a bar begins beside the lifeline: the candidate's key exists in
//	~ c0 end key              etcd or, for "leads", the candidate is sure that it leads
//	~ c0 note TEXT            an event at this participant
//	~ c0 call ASKS => SAYS    a request to etcd and its reply, at one moment
//	~ c0 hears TEXT           a notification from etcd
//	~ c0 send r0 TEXT         a request is sent,
//	~ etcd recv r0            and arrives later; so do replies, which name the receiver:
//	~ etcd send a0 c0 TEXT
//	~ tick                    time passes
//	~ c0 sure 2               the time left until the candidate's deadline; at 0 it no longer
//	                          leads, even if it has not noticed yet
//
// Candidates are called A, B, C in the order in which they appear.
//
// The same trace gives the same bytes, so that docs/model/check can tell whether the
// committed diagrams are current.
package main
