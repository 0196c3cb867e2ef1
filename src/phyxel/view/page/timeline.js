/** The bar below the picture: time goes, stands, is slow; in a run or a recording it can be moved through. */
import { button, Quantity } from "phyxel/controls.js";
import { icon, make } from "phyxel/elements.js";
import { digits } from "phyxel/quantities.js";

const TICKS = 1000; // of the scrubber
const NEAR = 0.3; // [s] to the end, within which the last numbers were told

export const clock = (time) => `${time < 100 ? time.toFixed(time < 10 ? 3 : 2) : digits(time)} s`;

/** Slow motion in words: real time, 1/4 ... */
export function pace(factor) {
  if (factor > 0.995) return "real time";
  const times = 1 / factor;
  return `1/${times < 9.95 ? Number(times.toFixed(1)) : Math.round(times)}`;
}

export class Timeline {
  constructor(view) {
    Object.assign(this, { view, looping: false, stopped: false });
    const ask = (what) => () => view.source.send(what);
    this.pause = button({ id: "pause", look: "pause", tip: "Let time stand still, or go on", key: "space",
      press: () => this.toggle() });
    this.step = button({ id: "step", look: "step", tip: "One single step of time, then stand still", key: ".",
      press: () => {
        this.stopped = true;
        view.source.send("step");
      } });
    this.restart = button({ id: "restart", look: "restart", key: "R",
      tip: "Begin again at time 0, with the materials and gravity as they are set now", press: ask("restart") });
    this.reset = button({ id: "reset", look: "reset", key: "⇧R",
      tip: "Begin again exactly as the scene was opened", press: ask("reset") });
    this.drop = button({ id: "drop", look: "drop", key: "D",
      tip: "Lift all bodies and let them fall", press: ask("drop") });
    this.loop = button({ id: "loop", look: "loop", key: "L", tip: "At the end begin again",
      press: () => this.again(!this.looping) });
    this.clock = make("output", { id: "time", class: "clock",
      tip: "Time in the world since it began, in seconds" }, "0.000 s");
    this.speed = new Quantity({ id: "speed", label: "Speed", low: 0.01, high: 1, text: pace,
      tip: "Slow motion: how fast time goes in the world, from 1/100 to real time",
      ask: (factor) => view.source.send("speed", { factor: Math.min(Math.max(factor, 0.01), 1) }) });
    this.scrubber = make("input", { id: "seek", type: "range", min: 0, max: TICKS, step: 1, "aria-label": "Time",
      tip: "Move through the time of what was recorded" });
    this.scrubber.addEventListener("input", () => this.sought());
    this.scrubber.addEventListener("change", () => (this.held = false));
    this.element = make("div", { id: "timeline", class: "bar" });
  }

  toggle() {
    this.stopped = !this.view.scene.paused;
    this.view.source.send("pause", { on: this.stopped });
  }

  /** Whether to begin again at the end. */
  again(on) {
    this.looping = on;
    this.loop.setAttribute("aria-pressed", String(on));
  }

  /** A recording that stands still though nobody stopped it has come to its end. */
  goOn({ paused, duration }) {
    const ended = paused && duration && !this.stopped && this.view.numbers.time > duration - NEAR;
    if (ended && this.looping) this.view.source.send("pause", { on: false });
  }

  /** Scrub, at most once for each picture. */
  sought() {
    this.held = true;
    const time = (this.scrubber.value / TICKS) * this.view.scene.duration;
    this.clock.textContent = clock(time);
    this.paint();
    cancelAnimationFrame(this.asking);
    this.asking = requestAnimationFrame(() => this.view.source.send("seek", { time }));
  }

  paint() {
    this.scrubber.style.setProperty("--part", `${(100 * this.scrubber.value) / TICKS}%`);
  }

  set(scene) {
    const live = scene.mode === "live";
    if (this.mode !== scene.mode) {
      this.mode = scene.mode;
      const parts = live ? [this.pause, this.step, this.restart, this.reset, this.drop, this.clock, this.speed.element]
        : [this.pause, this.step, this.loop, this.scrubber, this.clock, this.speed.element];
      this.element.replaceChildren(...parts);
      this.element.classList.toggle("scrubbed", !live);
      this.again(scene.mode === "saved");
    }
    this.pause.replaceChildren(icon(scene.paused ? "play" : "pause"));
    this.pause.setAttribute("aria-label", scene.paused ? "Play" : "Pause");
    this.pause.setAttribute("aria-pressed", String(Boolean(scene.paused)));
    this.speed.set(scene.speed ?? 1);
    this.goOn(scene);
  }

  /** The time of the world, of the run or of the recording. */
  at(time) {
    const { duration } = this.view.scene;
    if (this.held) return;
    this.clock.textContent = clock(time);
    if (!duration) return;
    this.scrubber.value = Math.round((TICKS * time) / duration);
    this.scrubber.setAttribute("aria-valuetext", clock(time));
    this.paint();
  }
}
