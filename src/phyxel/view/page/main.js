/** The page: a source of frames and messages, a stage that draws, hands, panels. */
import { Orbit } from "phyxel/camera.js";
import { Connection } from "phyxel/connection.js";
import { button, settle } from "phyxel/controls.js";
import { Stage } from "phyxel/draw.js";
import { make } from "phyxel/elements.js";
import { gestures, keys } from "phyxel/keys.js";
import { Legend } from "phyxel/legend.js";
import { Panels } from "phyxel/panels.js";
import { embedded, Player } from "phyxel/player.js";
import { Help, Status } from "phyxel/status.js";
import { Timeline } from "phyxel/timeline.js";
import { startTips } from "phyxel/tips.js";
import { Hands, TOOLS } from "phyxel/tools.js";

const SVG = "http://www.w3.org/2000/svg";
const SLOW = 50; // [ms] that a picture may take before the page wants its share of the GPU
const WIDE = 1.25; // width over height of what the first camera must show: most scenes are made for wider pictures
const DARK = matchMedia("(prefers-color-scheme: dark)");

class View {
  constructor() {
    this.canvas = document.getElementById("picture");
    this.scene = { mode: embedded() ? "saved" : "live", bodies: [], units: {}, gravity: [0, -9.81, 0] };
    Object.assign(this, { numbers: {}, frame: null, hover: null, stale: true, camera: null, begun: 0, done: 0 });
    this.status = new Status(this);
    this.legend = new Legend();
    this.timeline = new Timeline(this);
    this.panels = new Panels(this, document.getElementById("panels"));
    this.hands = new Hands(this, { stroke: (from, to) => this.stroke(from, to), picked: () => this.markTool() });
    this.help = new Help(keys(this).filter(({ text }) => text).map(({ shown, text }) => [shown, text]), gestures(this));
    this.lay();
    startTips();
  }

  /** What the hands may do here. */
  get live() {
    return this.scene.mode === "live";
  }

  /** Everything that lies over the picture. */
  lay() {
    this.line = document.createElementNS(SVG, "line");
    const svg = document.createElementNS(SVG, "svg");
    svg.id = "stroke";
    svg.append(this.line);
    this.toolbar = make("div", { id: "toolbar", class: "bar", role: "toolbar", "aria-label": "Tools" });
    this.corner = make("div", { id: "corner", class: "bar" },
      button({ id: "fit", look: "fit", key: "F", tip: "Look at all bodies", press: () => this.fit() }),
      button({ id: "help", look: "help", key: "H", tip: "All gestures and keys", press: () => this.help.toggle() }),
      button({ id: "panels_toggle", look: "panels", key: "T", tip: "Show or hide the panels",
        press: () => this.togglePanels() }));
    document.getElementById("scene").append(svg, this.panels.picture.handle, this.status.element, this.toolbar,
      this.corner, this.legend.element, this.timeline.element, this.status.toasts, this.status.overlay);
    document.body.append(this.help.element);
    if (matchMedia("(max-width: 760px)").matches) this.togglePanels(false);
  }

  makeTools() {
    const tool = ({ name, text, tip }, k) => button({ id: `tool_${name}`, look: name, key: `${k + 1}`,
      tip: `${text}: ${tip}`, press: () => this.hands.choose(name) });
    this.orbit = button({ id: "orbit", look: "orbit", key: "O",
      tip: "Look around: every drag turns the camera, as with Alt held", press: () => this.toggleOrbit() });
    this.toolbar.replaceChildren(...(this.live ? [...TOOLS.map(tool), this.orbit] : []));
    this.toolbar.hidden = !this.live;
    this.markTool();
  }

  markTool() {
    for (const { name } of TOOLS) {
      document.getElementById(`tool_${name}`)?.setAttribute("aria-pressed", String(this.hands.tool === name));
    }
    this.orbit?.setAttribute("aria-pressed", String(this.hands.orbiting));
  }

  toggleOrbit() {
    this.hands.orbiting = !this.hands.orbiting;
    this.markTool();
  }

  togglePanels(on) {
    document.body.classList.toggle("alone", on === undefined ? undefined : !on);
  }

  /** The stroke of a cut, from one pointer event to another; none if `from` is null. */
  stroke(from, to) {
    const { left, top } = this.canvas.getBoundingClientRect();
    this.line.parentNode.classList.toggle("drawn", Boolean(from));
    if (!from) return;
    const ends = { x1: from.clientX - left, y1: from.clientY - top, x2: to.clientX - left, y2: to.clientY - top };
    for (const [name, value] of Object.entries(ends)) this.line.setAttribute(name, value);
  }

  /** The next picture is to be drawn. */
  touch() {
    this.stale = true;
  }

  fit() {
    if (this.frame) this.camera?.fit(this.frame, ...this.room);
    this.touch();
  }

  /** Width over height of the picture, and the share of its height that the bar below covers. */
  get room() {
    const { clientWidth, clientHeight } = this.canvas;
    const bar = this.timeline.element.getBoundingClientRect();
    const below = (this.canvas.getBoundingClientRect().bottom - bar.top) / clientHeight;
    return [clientWidth / clientHeight, Math.min(Math.max(below, 0), 0.5)];
  }

  told(message) {
    const hear = {
      scene: () => this.setScene(message),
      numbers: () => this.setNumbers(message),
      history: () => this.panels.measured.history(message),
      notice: () => this.status.notice(message.text, message.level),
      busy: () => this.status.busy(message.text),
      ready: () => this.status.ready(),
      blown: () => this.status.blown(message.text),
      grabbed: () => message.body && this.panels.choose(message.body),
      file: () => download(message),
    }[message.kind];
    hear?.();
  }

  setScene(scene) {
    const first = this.name !== scene.name || this.mode !== scene.mode;
    this.scene = scene;
    Object.assign(this, { name: scene.name, mode: scene.mode });
    if (scene.camera && (first || !this.camera)) {
      this.camera = new Orbit(scene.camera);
      this.aimed = false;
    }
    if (first) this.makeTools();
    document.documentElement.dataset.mode = scene.mode;
    this.status.named(scene);
    this.timeline.set(scene);
    this.panels.set(scene);
    this.touch();
  }

  setNumbers(numbers) {
    if (numbers.time < this.numbers.time) this.panels.measured.begin();
    this.numbers = numbers;
    this.status.set(numbers);
    if (this.scene.mode !== "live") this.timeline.at(numbers.time);
    this.panels.measured.add(numbers);
  }

  /** Connection lost: what is seen stays, and says so. */
  changed(state) {
    this.status.connected(state);
    if (state === "lost") this.hands.finish(true);
  }

  start() {
    try {
      this.stage = new Stage(this.canvas);
    } catch (error) {
      console.error(error);
      this.status.refuse("This browser cannot draw it", `${error.message}. Phyxel needs WebGL2: try a current ` +
        "Firefox, Chrome, Edge or Safari, with hardware acceleration switched on.");
      return;
    }
    const ears = { told: (message) => this.told(message), changed: (state) => this.changed(state) };
    this.source = embedded() ? new Player(embedded(), ears) : new Connection(ears);
    new ResizeObserver(() => this.resize()).observe(this.canvas);
    DARK.addEventListener("change", () => this.resize());
    listen(this);
    freeKeys();
    requestAnimationFrame(() => this.turn());
  }

  resize() {
    const { clientWidth, clientHeight } = this.canvas;
    this.stage.resize(clientWidth, clientHeight, devicePixelRatio);
    this.stage.theme(DARK.matches);
    this.touch();
  }

  /**
   * One turn of the page: hands heard, the newest frame in, the picture drawn if anything changed and the GPU is free.
   */
  turn() {
    requestAnimationFrame(() => this.turn());
    settle(this.source.heard);
    if (!this.camera) return;
    const free = this.free(performance.now());
    const fresh = free ? this.source.take() : null;
    if (fresh) this.receive(fresh);
    this.hands.frame(Boolean(fresh));
    if (this.stale && free) this.draw();
    if (fresh) this.source.seen(fresh);
  }

  /** Whether the GPU is done with the last picture and, if that took long, had time for the page itself. */
  free(now) {
    const { ready } = this.stage, took = this.done - this.begun;
    if (!ready) this.done = now;
    return ready && (took < SLOW || now - this.done > took / 2);
  }

  receive(frame) {
    this.frame = frame;
    this.stage.show(frame);
    if (this.camera && !this.aimed) this.camera.uncover(...this.room, WIDE);
    this.aimed = Boolean(this.camera);
    this.legend.set(frame.about.legend);
    if (this.scene.mode === "live") this.timeline.at(frame.about.time);
    this.touch();
  }

  draw() {
    this.stale = false;
    this.begun = this.done = performance.now();
    const { pins = [], grabs = [] } = this.frame?.about ?? {};
    this.panels.picture.follow();
    const marks = { pins, grabs, plane: this.panels.picture.plane, hover: this.hover };
    if (this.stage.draw(this.camera, marks)) this.touch();
  }
}

function listen(view) {
  const known = new Map(keys(view).flatMap((entry) => entry.keys.map((key) => [key, entry.press])));
  addEventListener("keydown", (event) => {
    const typing = event.target.matches?.("input[type=text], select") || document.querySelector("dialog[open]");
    const pressing = event.key === " " && event.target.matches?.("button, summary, input[type=checkbox]");
    const sliding = event.key.startsWith("Arrow") && event.target !== view.canvas;
    if (typing || pressing || sliding || event.ctrlKey || event.metaKey) return;
    const shifted = event.shiftKey && /^[a-z]$/i.test(event.key);
    const name = shifted ? `⇧${event.key.toUpperCase()}` : event.key.toLowerCase();
    const press = known.get(name);
    if (!press) return;
    event.preventDefault();
    press();
    view.touch();
  });
}

/** What a pointer has pressed or chosen does not keep the keys: space is to stop time, not to press it again. */
function freeKeys() {
  let pointed = false;
  addEventListener("pointerdown", () => (pointed = true), true);
  addEventListener("keydown", () => (pointed = false), true);
  const free = (kinds) => ({ target }) => pointed && target.closest?.(kinds)?.blur();
  addEventListener("click", free("button, summary, input[type=checkbox]"));
  addEventListener("change", free("select"));
}

/** Give a file to whoever sits at the page. */
function download({ name, type, base64, url }) {
  const bytes = base64 && Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const href = url ?? URL.createObjectURL(new Blob([bytes], { type }));
  const link = make("a", { href, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  if (!url) setTimeout(() => URL.revokeObjectURL(href), 10000);
}

const view = new View();
/** For tests and curious users. */
window.phyxel = {
  get stage() { return view.stage; },
  get camera() { return view.camera; },
  get source() { return view.source; },
  get scene() { return view.scene; },
  get numbers() { return view.numbers; },
  get frame() { return view.frame; },
  get latency() { return view.source?.latency ?? null; },
};
view.start();
