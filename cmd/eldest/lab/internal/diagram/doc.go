// Package diagram draws sequence diagrams in SVG: of transcripts and, with a Sheet, of other
// messages between candidates and etcd, such as the traces of docs/model.
//
//	err := diagram.Draw(file, "Resign", entries)
//
//	sheet := diagram.NewSheet(layout, []string{diagram.Etcd, "A"})
//	sheet.Arrow("request", "A", diagram.Etcd, sheet.Y, sheet.Y, false, "lease?")
//	sheet.Y += 30
//	err := sheet.Write(file, "Grant", sheet.Y)
//
// Each message has its place; nothing is left out. Not guaranteed: that a long transcript makes a
// good picture.
//
// Each client of a transcript has a lifeline, from the left in the order of appearance, with etcd
// in the middle (to the right of a single client). A request is a solid arrow, an answer a dashed
// one, an event a coloured one; a lost message ends in a cross before its target. The text of a
// message is above its arrow, beside the client's lifeline. A bar beside a lifeline shows how long
// a candidate's key is in etcd; it has another colour while that key is the oldest.
//
// Texts are measured by their number of characters, because readers have different fonts. The same
// entries give the same bytes, so that a committed drawing can be compared with a new one.
package diagram
