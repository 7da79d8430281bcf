// Package plain makes texts from outside fit to be shown. Keys, values, the texts of errors and the
// files that a command is given can be any bytes, and must not control a terminal: control characters
// move the cursor, overwrite what was printed before, change the title, or have the terminal type an
// answer; other characters, which change the direction of writing or have no width, make a text look
// like another one.
//
// Characters are fit if strconv.IsPrint reports true for them: letters, marks, numbers, punctuation,
// symbols and the space. They are left as they are. All other characters, and bytes that are not
// UTF-8, are escaped as in a string of Go or of JSON.
//
// # Not guaranteed
//
// That two texts that look alike are the same: letters of different scripts can look alike, and are
// not changed.
package plain
