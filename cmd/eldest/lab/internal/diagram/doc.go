// Package diagram draws transcripts as sequence diagrams, in SVG.
//
//	err := diagram.Draw(file, "Resign", entries)
//
// Not guaranteed: that a long transcript makes a good picture. Each message has its place;
// nothing is left out.
//
// Whoever is on the client's side has a lifeline, from the left in the order of appearance,
// with etcd in their middle (to the right of one that is alone). A request is a solid arrow,
// an answer a dashed one, an event a coloured one; what was lost ends in a cross before it
// is there. What a message says stands above its arrow, beside the lifeline of whom it
// concerns. A bar beside a lifeline is the time that a candidate's key is in etcd; it has
// another colour while that key is the oldest.
//
// Texts are measured by their number of characters, because fonts differ from reader to
// reader. The same entries give the same bytes, so that a committed drawing can be held
// against what is drawn now.
package diagram
