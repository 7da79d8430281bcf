// The times between frames, of the last five seconds: the test in the browser reads them at
// window.eldest.frames.

const WINDOW_MS = 5_000;
const MOST = 2_000; // also at 240 frames a second

export class Frames {
  #at = new Float64Array(MOST); // when each frame began
  #took = new Float64Array(MOST); // the time since the frame before it
  #next = 0;
  #last = 0;
  total = 0; // frames so far

  // frame counts a frame that begins now, in milliseconds of any clock.
  frame(now) {
    if (this.#last > 0) {
      this.#at[this.#next] = now;
      this.#took[this.#next] = now - this.#last;
      this.#next = (this.#next + 1) % MOST;
      this.total++;
    }
    this.#last = now;
  }

  // recent returns the intervals of the last five seconds, shortest first.
  recent() {
    const known = Math.min(this.total, MOST);
    const out = [];
    for (let i = 0; i < known; i++) if (this.#at[i] > this.#last - WINDOW_MS) out.push(this.#took[i]);
    return out.sort((a, b) => a - b);
  }

  quantile(q) {
    const all = this.recent();
    return all.length === 0 ? 0 : all[Math.min(all.length - 1, Math.floor(q * all.length))];
  }

  get count() {
    return this.recent().length;
  }

  get p50() {
    return this.quantile(0.5);
  }

  get p95() {
    return this.quantile(0.95);
  }

  get longest() {
    return this.recent().at(-1) || 0;
  }
}
