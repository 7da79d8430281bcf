// Package benchpage makes one self-contained HTML page of what "eldest bench" found: a
// chapter for each run with its set-up, pictures and all figures as a table. It needs no
// network, and no JavaScript but for what is shown under the pointer.
//
// # Pictures
//
// They are drawn by gonum.org/v1/plot as SVG and stand in the page as such. The colours
// in them are placeholders, which are replaced by CSS variables, so that one page serves
// light and dark screens.
//
//   - Ratios: the median (of counts: the mean) of each contender to that of the one that
//     all are compared with, one line for each group.
//   - Scaling: median (or mean) and p99 over N, or over the TTL, where there are several.
//   - Percentiles: how long the best so many percent of the rounds took, on a scale of
//     nines, on which p90, p99 and p99.9 are equally far apart.
//
// An axis of values is logarithmic where they span more than a factor of ten and all are
// positive; where a count may be zero too, zero has a place of its own at the bottom.
//
// # Colours
//
// They belong to contenders, whoever else takes part: see hues.
//
// # Not guaranteed
//
// That the page's markup stays as it is. Programs read the JSON.
package benchpage
