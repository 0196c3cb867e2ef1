/** The running world at the other end of a websocket. Comes back by itself when it was cut off; never throws. */
import { decode } from "phyxel/decode.js";

const SOONEST = 250, LATEST = 5000; // [ms] between two tries
const RECENT = 60; // of the latencies whose median is told

export class Connection {
  /**
   * `told(message)` hears text messages, `changed(state)` hears "connecting", "open" and "lost", `asked(what, n)` what
   * is sent.
   */
  constructor({ told, changed, asked }) {
    Object.assign(this, { told, changed, asked, live: true, count: 0, heard: 0, wait: SOONEST, frame: null });
    this.kept = new Map();
    this.stamps = new Map();
    this.latencies = [];
    this.connect();
    addEventListener("online", () => this.hurry());
    document.addEventListener("visibilitychange", () => document.hidden || this.hurry());
  }

  connect() {
    clearTimeout(this.timer);
    this.timer = 0;
    this.changed("connecting");
    const address = new URL("/live" + location.search, location.href);
    address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(address);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => this.opened();
    socket.onclose = () => this.closed();
    socket.onmessage = ({ data }) => this.received(data);
    this.socket = socket;
  }

  opened() {
    Object.assign(this, { wait: SOONEST, heard: 0, frame: null });
    this.kept.clear();
    this.stamps.clear();
    this.changed("open");
  }

  closed() {
    this.changed("lost");
    this.timer = setTimeout(() => this.connect(), this.wait);
    this.wait = Math.min(2 * this.wait, LATEST);
  }

  /** Try again now, if a try is due at all. */
  hurry() {
    if (this.timer) this.connect();
  }

  /** Frames that come faster than they can be drawn are skipped, but what they bring to be kept is kept. */
  received(data) {
    try {
      if (typeof data === "string") this.told(JSON.parse(data));
      else this.frame = decode(data, this.kept);
    } catch (error) {
      console.warn("a message that could not be read", error);
    }
  }

  /** The newest frame, once; null if there is none that was not taken. */
  take() {
    const frame = this.frame;
    this.frame = null;
    return frame;
  }

  /** Tell that a frame is drawn, and learn how long it took from the hand to the picture. */
  seen(frame) {
    this.say({ do: "seen", frame: frame.about.frame });
    this.heard = Math.max(this.heard, frame.about.heard ?? 0);
    const now = performance.now();
    for (const [n, stamp] of this.stamps) {
      if (n > this.heard) break;
      this.stamps.delete(n);
      this.latencies.push(now - stamp);
    }
    this.latencies.splice(0, this.latencies.length - RECENT);
  }

  /** Median time from a pointer event to the drawn frame that had heard it [ms]; null before the first. */
  get latency() {
    const sorted = [...this.latencies].sort((a, b) => a - b);
    return sorted.length ? sorted[sorted.length >> 1] : null;
  }

  /** Ask for something; `stamp` is the time of the pointer event it comes from. Returns the number of the command. */
  send(what, fields = {}, stamp = null) {
    const n = ++this.count;
    if (this.say({ do: what, n, ...fields }) && stamp !== null) this.stamps.set(n, stamp);
    this.asked?.(what, n);
    return n;
  }

  say(message) {
    if (this.socket.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(message));
    return true;
  }
}
