// Command modeltrace draws what a model of docs/model did, step by step, as a
// sequence diagram: it reads the lines that a replayed trail prints and writes SVG.
//
// Not guaranteed: that it draws any trace well. It is made for short ones, of a dozen
// or two steps; docs/model/check picks those.
//
// # Lines
//
// Each begins with "~", then who (c0, c1, ... for candidates, etcd, outside) and what:
//
//	~ c0 begin key            a bar begins beside the lifeline: its key lives in etcd,
//	~ c0 end key              or, for "leads", the candidate is sure that it leads
//	~ c0 note TEXT            something happens there
//	~ c0 call ASKS => SAYS    a request to etcd and its reply, at one moment
//	~ c0 hears TEXT           news from etcd
//	~ c0 send r0 TEXT         a request leaves,
//	~ etcd recv r0            and arrives later; so do replies, which say to whom:
//	~ etcd send a0 c0 TEXT
//	~ tick                    time passes
//	~ c0 sure 2               so much is left to the candidate's deadline; at 0 it
//	                          leads no more, whether it knows or not
//
// Candidates are called A, B, C in the order in which they appear.
//
// The same trace gives the same bytes, so that docs/model/check can tell whether the
// committed diagrams are current.
package main
