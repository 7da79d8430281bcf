// Package figures shows the reports of "eldest bench": as JSON for programs, as text tables, and as
// one self-contained HTML page with pictures, which needs no network and no JavaScript.
//
// # The document
//
// One run is one JSON object, a bench.Report; several runs are one object {"runs": [...]}. Read takes
// either, and several of them one after another.
//
// # Ratios
//
// A ratio compares medians, or for counts the means, within one group: one metric in one regime at
// one N. It is relative to the contender "concurrency", or to the first one if that did not take
// part, and to the "floor". There is no ratio if the other figure is 0 or missing.
//
// A metric "bound" is the same for all contenders: it is shown with the metric "win", whose values
// are compared with it, and not by itself.
//
// # Pictures
//
// They are drawn by gonum.org/v1/plot as SVG:
//
//   - ratios: the ratio of each contender to the one that all are compared with, a line for each group;
//   - scaling: median (or mean) and p99 over N, or over the TTL, if there are several;
//   - percentiles: the time that so many percent of the rounds did not exceed, on a scale on
//     which p90, p99 and p99.9 are equally far apart.
//
// An axis of values is logarithmic if all are positive and span a factor of ten or more.
//
// # Not guaranteed
//
// Fields that this version does not have may be lost in reading and writing, and the page's markup
// may change. Programs should read the JSON.
package figures
