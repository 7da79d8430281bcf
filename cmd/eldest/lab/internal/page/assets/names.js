// Names: of candidates, of keys, and their order.

// natural compares names, so that p2 is before p10.
export const natural = new Intl.Collator('en', { numeric: true }).compare;

// nameOf returns what a candidate is called: the participant, else its value, else the last part of
// its key, which is the lease.
export function nameOf(place) {
  return place.who || place.value || shortKey(place.key);
}

export function shortKey(key) {
  const text = String(key || '');
  return text.slice(text.lastIndexOf('/') + 1) || text;
}
