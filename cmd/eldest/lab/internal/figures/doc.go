// Package figures is what "eldest bench" found, as a document that programs read, and as
// a table for people.
//
// # The document
//
// One run of one scenario is one JSON object, that of bench.Report with additions: how it
// was started, how long it took, whether it was broken off, and a histogram for each
// result. Several runs are one object {"runs": [...]}. Read takes either, and several of
// them one after another. Times are in nanoseconds, sizes in bytes, counts are counts.
//
// # Histograms
//
// Samples are recorded in an HDR histogram with three significant digits; the document
// lists its buckets that hold something, with their inclusive bounds. Samples may be
// negative (a gap between two leaders that is an overlap), which HDR histograms do not
// know: those are recorded without their sign in a second one, whose bounds are turned.
// The percentiles are not the histogram's but exact ones, of the samples.
//
// # Ratios
//
// A ratio is of medians, or of counts' means, within one group: one metric in one regime
// at one N. It is to the contender "concurrency", or to the first one where that did not
// take part, and to the "floor". Where the other's figure is 0 or missing there is none.
//
// Where a failover has a bound, which is the same for all, it stands with the wins and not
// for itself, and the wins are compared with it, too.
//
// # Not guaranteed
//
// That fields which this version does not know survive reading and writing.
package figures
