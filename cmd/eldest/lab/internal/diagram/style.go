package diagram

// style is that of the drawings of docs/model, so that a reader of both need not learn it
// twice.
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
.oldest { fill: #e08a1e }
`
