/** A recording inside a saved page, with the interface of a connection: nothing is asked of any network. */
import { decode } from "phyxel/decode.js";
import { Unpacker } from "phyxel/patches.js";

const TOLD = 100; // [ms] between two messages about the time
const AT_ONCE = 40; // [ms] that unpacking takes before the page itself has its turn

/** What is embedded in this page: base64 text, or "" if the page is live. */
export const embedded = () => document.getElementById("recording")?.textContent.trim() ?? "";

export class Player {
  constructor(text, { told, changed }) {
    Object.assign(this, { told, changed, live: false, heard: Infinity, latency: null, frames: [], kept: new Map() });
    Object.assign(this, { numbers: [], opened: false, at: 0, shown: -1, last: 0, tellNext: 0 });
    this.ready = this.open(text).catch((error) => {
      console.error(error);
      told({ kind: "blown", text: `The recording in this file cannot be read: ${error.message}` });
    });
  }

  async open(text) {
    this.changed("connecting");
    const bytes = await unpacked(text);
    const unpacker = new Unpacker();
    let rest = performance.now() + AT_ONCE;
    for (const record of records(bytes)) {
      if (record[0] === 0x7b) this.hear(JSON.parse(new TextDecoder().decode(record)));
      else this.keep(unpacker.unpack(this.read(record)));
      if (performance.now() < rest) continue;
      await new Promise((go) => setTimeout(go));
      rest = performance.now() + AT_ONCE;
    }
    if (!this.frames.length) throw new Error("there is no picture in it");
    const duration = this.frames.at(-1).at;
    this.scene = { kind: "scene", bodies: [], ...this.scene, mode: "saved", duration, paused: false, speed: 1 };
    this.last = performance.now();
    this.opened = true;
    this.changed("saved");
    this.told(this.scene);
    if (this.numbers.length) this.told(this.history());
  }

  hear(message) {
    if (message.kind === "scene") this.scene = message;
    else if (message.kind === "numbers") this.numbers.push({ ...message, time: this.frames.at(-1)?.at ?? 0 });
    else this.told(message);
  }

  /** All numbers of the recording at once, by its own time. */
  history() {
    const names = ["time", "kinetic", "elastic", "potential", "volume"];
    const columns = names.map((name) => [name, this.numbers.map((numbers) => numbers[name])]);
    return { kind: "history", ...Object.fromEntries(columns) };
  }

  /** A frame, with what is kept of those before; in a copy, where blobs lie as they were aligned. */
  read(record) {
    return decode(record.buffer.slice(record.byteOffset, record.byteOffset + record.byteLength), this.kept);
  }

  keep(frame) {
    this.frames.push({ at: frame.about.at ?? frame.about.time, frame });
  }

  /** The frame of this moment, if it was not the last one taken. */
  take() {
    if (!this.opened) return null;
    this.pass();
    const index = this.before(this.at);
    if (index === this.shown) return null;
    this.shown = index;
    return this.frames[index].frame;
  }

  pass() {
    const now = performance.now();
    const passed = ((now - this.last) / 1000) * this.scene.speed;
    this.last = now;
    const { duration, paused } = this.scene;
    if (!paused) this.at = Math.min(this.at + passed, duration);
    const ended = !paused && this.at === duration;
    if (now > this.tellNext || ended) this.tell(now);
    if (ended) this.change({ paused: true });
  }

  tell(now) {
    this.tellNext = now + TOLD;
    this.told({ kind: "numbers", time: this.at });
  }

  /** The last frame at or before a time, by halving. */
  before(at) {
    let low = 0, high = this.frames.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.frames[middle].at <= at) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  change(news) {
    this.scene = { ...this.scene, ...news };
    this.told(this.scene);
  }

  send(what, fields = {}) {
    if (!this.opened) return 0;
    const { duration, paused } = this.scene;
    if (what === "pause") {
      if (paused && !fields.on && this.at >= duration) this.at = 0;
      this.change({ paused: fields.on });
    } else if (what === "speed") this.change({ speed: fields.factor });
    else if (what === "seek") this.at = Math.min(Math.max(fields.time, 0), duration);
    else if (what === "step") this.step();
    else if (what === "restart" || what === "reset") this.at = 0;
    this.tell(performance.now());
    return 0;
  }

  step() {
    this.change({ paused: true });
    this.at = this.frames[Math.min(this.before(this.at) + 1, this.frames.length - 1)].at;
  }

  seen() {}
}

async function unpacked(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  if (typeof DecompressionStream === "undefined") throw new Error("this browser is too old to unpack it");
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** [u32 length, bytes]..., as views. */
function* records(bytes) {
  const view = new DataView(bytes.buffer);
  for (let place = 0; place + 4 <= bytes.length; ) {
    const length = view.getUint32(place, true);
    yield bytes.subarray(place + 4, place + 4 + length);
    place += 4 + length;
  }
}
