/** The page: a source of frames and messages, a stage that draws, hands, panels. */
import { Unheard } from "phyxel/busy.js";
import { Orbit, VIEWS } from "phyxel/camera.js";
import { Connection } from "phyxel/connection.js";
import { Brush } from "phyxel/brush.js";
import { button, settle } from "phyxel/controls.js";
import { Stage } from "phyxel/draw.js";
import { download, make } from "phyxel/elements.js";
import { Film } from "phyxel/film.js";
import { gestures, keys, VIEW_KEYS } from "phyxel/keys.js";
import { Legend } from "phyxel/legend.js";
import { Panels } from "phyxel/panels.js";
import { embedded, Player } from "phyxel/player.js";
import { Files } from "phyxel/files.js";
import { Help, Status } from "phyxel/status.js";
import { Timeline } from "phyxel/timeline.js";
import { startTips } from "phyxel/tips.js";
import { Hands, TOOLS } from "phyxel/tools.js";
import { Undo } from "phyxel/undo.js";
import { boxOf } from "phyxel/vectors.js";

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
    this.film = new Film(this);
    this.brush = new Brush(this);
    this.timeline = new Timeline(this);
    this.panels = new Panels(this, document.getElementById("panels"));
    this.hands = new Hands(this, { stroke: (from, to) => this.stroke(from, to), picked: () => this.markTool() });
    this.help = new Help(keys(this).filter(({ text }) => text).map(({ shown, text }) => [shown, text]), gestures(this));
    this.undo = new Undo(this);
    this.files = new Files(this);
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
      button({ id: "fit", look: "fit", key: "F", tip: "Frame all bodies; ⇧F: the one in the panels",
        press: () => this.look() }),
      ...Object.keys(VIEWS).map((name) => button({ id: `view_${name}`, look: name, key: VIEW_KEYS[name],
        tip: `Look from the ${name}`, press: () => this.look(name) })),
      this.film.photo, this.film.record,
      button({ id: "help", look: "help", key: "H", tip: "All gestures and keys", press: () => this.help.toggle() }),
      button({ id: "panels_toggle", look: "panels", key: "T", tip: "Show or hide the panels",
        press: () => this.togglePanels() }));
    this.status.element.append(this.film.clock);
    document.getElementById("scene").append(svg, this.panels.picture.handle, this.status.element, this.toolbar,
      this.corner, this.brush.element, this.legend.element, this.timeline.element,
      this.status.toasts, this.status.overlay);
    document.body.append(this.help.element);
    if (matchMedia("(max-width: 760px)").matches) this.togglePanels(false);
  }

  makeTools() {
    const tool = ({ name, text, tip }, k) => button({ id: `tool_${name}`, look: name, key: `${k + 1}`,
      tip: `${text}: ${tip}`, press: () => this.hands.choose(name) });
    this.orbit = button({ id: "orbit", look: "orbit", key: "O",
      tip: "Look around: every drag turns the camera, as with Alt held", press: () => this.toggleOrbit() });
    this.toolbar.replaceChildren(...(this.live ? [...TOOLS.map(tool), this.orbit, this.undo.button, this.files.button, this.files.input] : []));
    this.toolbar.hidden = !this.live;
    this.markTool();
  }

  markTool() {
    for (const { name } of TOOLS) {
      document.getElementById(`tool_${name}`)?.setAttribute("aria-pressed", String(this.hands.tool === name));
    }
    this.brush.show(this.live && this.hands.tool === "brush");
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

  /** Fly to where all bodies, or the pieces of one, are seen: from where it looks now, or from one of `VIEWS`. */
  look(view = null, body = null) {
    const parts = (this.frame?.parts ?? []).filter(({ about }) => !about.collider && about.count);
    const pieces = parts.filter(({ name }) => body === null || name === body || name.startsWith(`${body}-`));
    const box = boxOf(pieces.length ? pieces : parts);
    if (box) this.camera?.flyTo(box, this.room, VIEWS[view]);
    this.touch();
  }

  /** What is looked at, as a camera that another page or a scene begins with. */
  get sight() {
    return this.camera?.covered(this.aimed ?? this.opening, WIDE);
  }

  /** What bars leave free of the picture, as `Orbit` has it. */
  get room() {
    const { left, right, top, width, height } = this.canvas.getBoundingClientRect();
    const bars = [this.toolbar, this.corner, this.status.element];
    const [tools, corner, status] = bars.map((element) => element.getBoundingClientRect());
    const beside = corner.height > corner.width; // on low pictures it lies above the body
    const side = Math.max(this.toolbar.hidden ? 0 : tools.right - left, beside ? right - corner.left : 0);
    const above = beside ? 0 : Math.min((Math.max(corner.bottom, status.bottom) - top) / height, 0.4);
    const { covered } = this.opening;
    const aspect = (width - 2 * Math.min(side, width / 3)) / height;
    return { aspect, covered: covered + above, raised: covered - above };
  }

  /** The same with only the bar below, which all pages have: by this a camera is made and saved. */
  get opening() {
    const { width, height, bottom } = this.canvas.getBoundingClientRect();
    const below = (bottom - this.timeline.element.getBoundingClientRect().top) / height;
    const covered = Math.min(Math.max(below, 0), 0.4);
    return { aspect: width / height, covered, raised: covered };
  }

  told(message) {
    const hear = {
      scene: () => this.setScene(message),
      numbers: () => this.setNumbers(message),
      history: () => this.panels.measured.history(message),
      notice: () => this.status.notice(message.text, message.level),
      busy: () => {
        this.unheard.forget();
        this.status.busy(message);
      },
      progress: () => this.status.progress(message),
      past: () => this.undo.set(message.undo),
      opened: () => (this.awaits = true),
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
      this.aimed = null; // for no room yet
    }
    if (first) this.makeTools();
    document.documentElement.dataset.mode = scene.mode;
    this.status.named(scene);
    this.timeline.set(scene);
    this.panels.set(scene);
    this.brush.set(scene);
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
    if (state === "lost") this.unheard.forget();
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
    this.resize();
    this.stage.draw(new Orbit()); // the empty studio: nobody looks at a black picture
    if (!embedded()) this.status.busy({ text: "Opening the world …" });
    this.unheard = new Unheard(this.status);
    const ears = { told: (message) => this.told(message), changed: (state) => this.changed(state),
      asked: (what, n) => this.unheard.asked(what, n) };
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
    this.refit();
    this.touch();
  }

  /** What was seen in a picture of another size is seen in this one. */
  refit() {
    const { camera, opening } = this;
    if (!camera || !this.aimed) return;
    camera.place(camera.covered(this.aimed, WIDE));
    camera.uncover(opening, WIDE);
    this.aimed = opening;
  }

  /**
   * One turn of the page: hands heard, the newest frame in, the picture drawn if anything changed and the GPU is free.
   */
  turn() {
    requestAnimationFrame(() => this.turn());
    settle(this.source.heard);
    this.unheard.look(this.source.heard);
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
    if (!this.frame) this.status.ready();
    this.frame = frame;
    this.stage.show(frame);
    if (this.camera && !this.aimed) {
      this.aimed = this.opening;
      this.camera.uncover(this.aimed, WIDE);
    }
    if (this.awaits) this.look(); // somebody new is there, maybe beside the picture
    this.awaits = false;
    this.legend.set(frame.about.legend);
    if (this.scene.mode === "live") this.timeline.at(frame.about.time);
    this.touch();
  }

  draw() {
    this.stale = false;
    this.begun = this.done = performance.now();
    this.panels.picture.follow();
    if (this.stage.draw(this.camera, { ...this.marks, hover: this.hover })) this.touch();
  }

  /** What hands have left in the picture. */
  get marks() {
    const { pins = [], grabs = [] } = this.frame?.about ?? {};
    return { pins, grabs, plane: this.panels.picture.plane, volume: this.panels.picture.volume };
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
