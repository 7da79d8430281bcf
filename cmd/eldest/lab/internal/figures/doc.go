// Package figures shows the reports of "eldest bench": as JSON for programs, as tables for people, and as
// one self-contained HTML page with pictures, which needs no network and no JavaScript.
//
// # The document
//
// One run is one JSON object, a bench.Report; several runs are one object {"runs": [...]}. Read takes
// either, and several of them one after another.
//
// # Ratios
//
// A ratio is of medians, or of counts' means, within one group: one metric in one regime
// at one N. It is to the contender "concurrency", or to the first one where that did not
// take part, and to the "floor". Where the other's figure is 0 or missing there is none.
//
// A metric "bound" is the same for all contenders: it is shown with the metric "win", with which
// the wins are compared, and not by itself.
//
// # Pictures
//
// They are drawn by gonum.org/v1/plot as SVG:
//
//   - ratios: that of each contender to the one that all are compared with, one line for each group;
//   - scaling: median (or mean) and p99 over N, or over the TTL, where there are several;
//   - percentiles: how long the best so many percent of the rounds took, on a scale on
//     which p90, p99 and p99.9 are equally far apart.
//
// An axis of values is logarithmic where all are positive and span a factor of ten or more.
//
// # Not guaranteed
//
// That fields which this version does not know survive reading and writing, and that the page's markup
// stays as it is. Programs read the JSON.
package figures
