// The connection to the server: events come from /events, actions go to /do.

// Clock estimates the time of the feed. An event arrives after it was made, so the greatest
// difference between its time and ours is nearest to the truth.
export class Clock {
  #ahead = -Infinity;
  #local;

  constructor(local = () => performance.now()) {
    this.#local = local;
  }

  // heard notes that an event of the time at has arrived now.
  heard(at) {
    const ahead = at - this.#local();
    if (ahead > this.#ahead) this.#ahead = ahead;
  }

  // reset is for another run of the program, whose time begins at 0.
  reset() {
    this.#ahead = -Infinity;
  }

  // now returns the time of the feed, in milliseconds; 0 if no event has arrived yet.
  now() {
    return this.#ahead === -Infinity ? 0 : this.#local() + this.#ahead;
  }
}

async function answerOf(response) {
  const text = await response.text();
  let body = null;
  try {
    body = text === '' ? {} : JSON.parse(text);
  } catch {
    // It is not JSON: an error that the server gives as plain text.
  }
  if (response.ok && body !== null) return body;
  if (response.ok) throw new Error('the server answered with something else than JSON');
  throw new Error((body && body.error) || text.trim() || `the server answered with status ${response.status}`);
}

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: 'same-origin', ...options });
  } catch {
    throw new Error('the server of this page does not answer: was eldest lab ended?');
  }
  return answerOf(response);
}

export const get = (path) => request(path);

export const post = (path, body) => request(path, {
  method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body),
});

const RETRY_MS = 2_000;

// connect reads the events for as long as the page is open. onEvents receives batches of them, and
// onStatus "connecting", "live" or "lost". after returns the number of the last event that was
// applied.
export function connect({ after, onEvents, onStatus }) {
  onStatus('connecting');
  const source = new EventSource(`/events?after=${after()}`);
  source.onopen = () => onStatus('live');
  source.onmessage = (e) => {
    let events;
    try {
      events = JSON.parse(e.data);
    } catch {
      return; // the connection ended within a message: it is sent again
    }
    if (Array.isArray(events)) onEvents(events);
  };
  source.onerror = () => {
    onStatus('lost');
    // The browser connects again by itself, unless the server has refused.
    if (source.readyState !== EventSource.CLOSED) return;
    source.close();
    setTimeout(() => connect({ after, onEvents, onStatus }), RETRY_MS);
  };
}
