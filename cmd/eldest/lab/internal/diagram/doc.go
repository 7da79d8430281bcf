// Package diagram draws sequence diagrams, in SVG: transcripts, and by a Sheet what else is
// said between candidates and etcd, such as the traces of docs/model.
//
//	err := diagram.Draw(file, "Resign", entries)
//
//	sheet := diagram.NewSheet(layout, []string{diagram.Etcd, "A"})
//	sheet.Arrow("request", "A", diagram.Etcd, sheet.Y, sheet.Y, false, "lease?")
//	sheet.Y += 30
//	err := sheet.Write(file, "Grant", sheet.Y)
//
// Not guaranteed: that a long transcript makes a good picture. Each message has its place;
// nothing is left out.
//
// Each client of a transcript has a lifeline, from the left in the order of appearance,
// with etcd in their middle (to the right of one that is alone). A request is a solid arrow,
// an answer a dashed one, an event a coloured one; what was lost ends in a cross before it
// is there. What a message says is written above its arrow, beside the lifeline of the client.
// A bar beside a lifeline is the time that a candidate's key is in etcd; it has another colour
// while that key is the oldest.
//
// Texts are measured by their number of characters, because fonts differ from reader to
// reader. The same entries give the same bytes, so that a committed drawing can be held
// against what is drawn now.
package diagram
