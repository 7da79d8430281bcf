// Arrays of bounded length. The page may be open for days: everything that grows with the time is
// kept in one of these.

// push appends a value, and drops the oldest ones if there are more than most. It drops a tenth at
// once, so that most calls move nothing. It returns what was dropped.
export function push(array, value, most) {
  array.push(value);
  if (array.length <= most + Math.ceil(most / 10)) return [];
  return array.splice(0, array.length - most);
}

// insert appends a value to an array that is in the order of their times, at. Events come almost in
// order; a late one is moved to its position.
export function insert(array, value, most) {
  let i = array.length;
  while (i > 0 && array[i - 1].at > value.at) i--;
  if (i === array.length) return push(array, value, most);
  array.splice(i, 0, value);
  return [];
}

// firstAt returns the index of the first value whose time is at least the given one.
export function firstAt(array, at) {
  let low = 0;
  let high = array.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (array[middle].at < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

// spanAt returns the span (from, to; to is null while it is open) that contains a time, or null.
export function spanAt(spans, at) {
  for (let i = spans.length - 1; i >= 0; i--) {
    const s = spans[i];
    if (s.from <= at) return s.to === null || s.to >= at ? s : null;
  }
  return null;
}
