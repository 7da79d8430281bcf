// Package plain makes texts from outside fit to be shown. Keys, values, the texts of
// errors and the files that a command is given are anybody's bytes, and whoever shows
// them must not obey them: control characters move a terminal's cursor, paint over what
// was printed before, change its title, or have it type an answer; others, which turn the
// direction of writing or have no width, make a text look like another one.
//
// What is fit is what strconv.IsPrint says: letters, marks, numbers, punctuation, symbols
// and the space. All other characters, and bytes that are no UTF-8, are written as in a
// string of Go or of JSON. What is fit is left as it is.
//
// # Not guaranteed
//
// That two texts which look alike are the same: letters of different scripts do, and
// these stay.
package plain
