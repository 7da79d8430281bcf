package diagram

// style has the classes of the messages, notes and bars of all diagrams; tick, outside, violated
// and claim are those of docs/model.
const style = `
svg { font: 12px system-ui, "DejaVu Sans", sans-serif; fill: #1c1c1c }
.paper { fill: #fff }
.title { font-size: 17px; font-weight: 600; text-anchor: middle }
.who { font-size: 15px; font-weight: 600; text-anchor: middle }
.life { stroke: #8a8a8a }
.said, .small { font-size: 11px; paint-order: stroke; stroke: #fff; stroke-width: 4px; stroke-linejoin: round }
.asked { font-weight: 600 }
.small { fill: #666 }
.request { stroke: #1c1c1c; stroke-width: 1.3 }
.answer { stroke: #1c1c1c; stroke-dasharray: 6 3 }
.news { stroke: #7a3e9d; stroke-width: 1.5 }
.lost { stroke: #c0392b; stroke-width: 2; fill: none }
.note { fill: #f3f0e6; stroke: #b8b09a }
.noted { font-size: 11px; text-anchor: middle }
.key { fill: #4c86c6 }
.oldest, .leads { fill: #e08a1e }
.tick { stroke: #b9b9b9; stroke-dasharray: 2 5 }
.outside { fill: #fbe3df; stroke: #c0392b }
.violated { fill: #c0392b }
.claim { fill: #fff; font-weight: 600; text-anchor: middle }
`
