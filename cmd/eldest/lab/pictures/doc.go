// Command pictures makes the two pictures at the beginning of the README: the output of "eldest
// demo", from a recording, and the costs of elections, from the results under docs/data.
// docs/pictures/generate calls it.
//
//	docs/pictures/generate         # demo.svg from demo.cast, costs.svg from docs/data
//	docs/pictures/generate record  # runs the demo first, half a minute, on a terminal of its own
//
// Nothing is measured here, and every line of the demo comes from the recording: the picture leaves
// out whole steps, and shows a line of dots for them. The test makes both pictures again and
// compares every byte, and checks that the demo still has the steps of the recording.
//
// The recording is an asciicast of version 2: a JSON object, and then a line [seconds, "o", text]
// for each piece of output (https://docs.asciinema.org/manual/asciicast/v2/). Asciinema can play
// it.
//
// # Not guaranteed
//
// A picture may not follow the colours of a website: an SVG in a page only has access to the
// preference of the reader's system (prefers-color-scheme). The terminal is dark in both.
package main
