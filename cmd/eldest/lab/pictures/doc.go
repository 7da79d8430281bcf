// Command pictures makes the two pictures at the front of the README: what "eldest demo"
// prints, from a recording, and what elections cost, from the results under docs/data.
// docs/pictures/generate calls it.
//
//	docs/pictures/generate         # demo.svg from demo.cast, costs.svg from docs/data
//	docs/pictures/generate record  # plays the demo again first, half a minute, on a terminal of its own
//
// Nothing is measured here, and no line of the demo is made up: the picture leaves out
// whole steps, and has a line of dots for them. The test makes both pictures again and compares every
// byte, and checks that the demo still has the steps of the recording.
//
// The recording is an asciicast of version 2: a JSON object, and then a line [seconds, "o", text] for
// each piece of output (https://docs.asciinema.org/manual/asciicast/v2/). It can be
// played with asciinema.
//
// The demo prints lines, and sets bold, dim and four colours (SGR). Any
// other control sequence is an error. Each run of characters is fixed to its
// columns by textLength, whatever monospaced font the reader has.
//
// # Not guaranteed
//
// That a picture follows the colours of a site: an SVG in a page knows those
// of the reader's system only (prefers-color-scheme). The terminal is dark in both.
package main
