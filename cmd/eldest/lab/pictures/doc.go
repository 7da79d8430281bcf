// Command pictures makes the two pictures at the front of the README: what "eldest demo"
// prints, from a recording, and what hand-overs cost, from the results under docs/data.
// docs/pictures/generate calls it.
//
//	docs/pictures/generate         # demo.svg from demo.cast, costs.svg from docs/data
//	docs/pictures/generate record  # plays the demo again first, half a minute, on a terminal of its own
//
// Nothing is measured here, and no line of the demo is made up: the picture leaves out
// whole acts, and says so with a line of dots. The test makes both pictures again and compares every
// byte, so neither can say what its source does not; and it looks whether the demo still has the acts
// of the recording.
//
// # The recording
//
// An asciicast of version 2: a JSON object, and then a line [seconds, "o", text] for
// each piece of output (https://docs.asciinema.org/manual/asciicast/v2/). It can be
// played with asciinema.
//
// # The terminal
//
// The demo prints lines, and sets bold, dim and four colours (SGR). That is all that is understood here; any
// other control sequence is an error and not a guess. Each run of characters is held to its
// columns by textLength, whatever monospaced font the reader has.
//
// # Not guaranteed
//
// That a picture follows the colours that a site has: an SVG in a page knows those
// of the reader's system only (prefers-color-scheme). The terminal is dark in both.
package main
