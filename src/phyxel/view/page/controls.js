/**
 * Controls that do not fight the hand: `set` tells what the world has; it is shown unless the control is being moved,
 * or what was asked last has not been heard yet.
 */
import { describe, icon, make } from "phyxel/elements.js";
import { fitting, inUnit, read } from "phyxel/quantities.js";

const STEPS = 400; // of a slider
const PATIENCE = 1500; // [ms] until the world's value is shown again though nothing was heard
const LULL = 150; // [ms] between what the world heard and the scene that tells of it
const BETWEEN = 80; // [ms] between two values that a moving slider asks for
const LOG = 20; // a range wider than this is a log scale

const asking = new Set();

/** Show the world's values again in controls whose last wish it has heard. */
export function settle(heard) {
  const now = performance.now();
  for (const control of asking) {
    const waited = now - control.asked.at;
    if (control.held || waited < LULL || (control.asked.n > heard && waited < PATIENCE)) continue;
    asking.delete(control);
    control.show(control.truth);
  }
}

/** Calls that come thick are thinned; the last always comes through. */
function thinned(call) {
  let last = -Infinity, timer = 0;
  return (value) => {
    clearTimeout(timer);
    const now = () => {
      last = performance.now();
      call(value);
    };
    const wait = last + BETWEEN - performance.now();
    if (wait <= 0) now();
    else timer = setTimeout(now, wait);
  };
}

class Control {
  constructor(ask) {
    this.ask = (value) => {
      this.asked = { n: ask(value) ?? 0, at: performance.now() };
      asking.add(this);
    };
  }

  set(value) {
    this.truth = value;
    if (!this.held && !asking.has(this)) this.show(value);
  }
}

/** Where a value stands on its slider, 0..1, and what stands there. */
export function scale(low, high) {
  if (!(low > 0 && high / low > LOG)) {
    return { part: (value) => (value - low) / (high - low), value: (part) => low + part * (high - low), log: false };
  }
  const span = Math.log(high / low);
  return { part: (value) => Math.log(value / low) / span, value: (part) => low * Math.exp(part * span), log: true };
}

/**
 * A number with its slider and its text. `off`, if it may be switched off: {value: what that is to the world, text};
 * `start()` is what it begins with when it is switched on, if that is not the middle.
 */
export class Quantity extends Control {
  constructor({ id, label, unit = "", low, high, tip, off = null, text = null, start = null, ask }) {
    super(ask);
    Object.assign(this, { unit, low, high, off, text, start, tip, scale: scale(low, high) });
    const gently = thinned(this.ask);
    this.slider = make("input", { id, type: "range", min: 0, max: STEPS, step: 1, "aria-label": label });
    this.entry = make("input", {
      id: `${id}_value`, type: "text", class: "entry", autocomplete: "off", spellcheck: false, inputMode: "decimal",
      "aria-label": `${label}${unit && `, ${unit}`}`,
    });
    this.tick = off && make("input", { id: `${id}_on`, type: "checkbox", "aria-label": `${label}: on or off` });
    this.element = make("div", { class: "quantity", tip }, make("label", { htmlFor: id }, this.tick, label),
      this.slider, this.entry);
    this.slider.addEventListener("input", () => {
      this.held = true;
      this.remembered = this.rounded(this.scale.value(this.slider.value / STEPS));
      this.show(this.remembered, { slider: false });
      gently(this.remembered);
    });
    this.slider.addEventListener("change", () => (this.held = false));
    this.entry.addEventListener("focus", () => this.entry.select());
    this.entry.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.written = false;
      if (event.key === "Escape") this.show(this.truth);
      if (event.key === "Enter" || event.key === "Escape") this.entry.blur();
    });
    this.entry.addEventListener("change", () => {
      this.written = false;
      this.typed();
    });
    this.entry.addEventListener("input", () => (this.written = true));
    this.tick?.addEventListener("change", () => this.switched());
  }

  /** Nothing can be asked for while there is a reason, in words, why it would change nothing. */
  rest(reason) {
    if (reason === this.idle) return;
    this.idle = reason;
    this.element.classList.toggle("idle", Boolean(reason));
    describe(this.element, reason || this.tip);
    for (const input of [this.entry, this.tick]) if (input) input.disabled = Boolean(reason);
    if (this.truth !== undefined) this.show(this.truth);
  }

  /** Another range; what is shown stays. */
  between(low, high) {
    if (low === this.low && high === this.high) return;
    Object.assign(this, { low, high, scale: scale(low, high) });
    if (this.truth !== undefined && !this.held) this.show(this.truth);
  }

  /** The three digits that are shown are what is asked for. */
  rounded(value) {
    return Number(value.toPrecision(3));
  }

  typed() {
    const value = read(this.entry.value, this.unit, this.fit);
    if (Number.isFinite(value)) {
      this.remembered = value;
      this.show(value);
      this.ask(value);
    } else this.show(this.truth);
  }

  switched() {
    const first = this.rounded(this.start?.() ?? this.scale.value(0.5));
    const value = this.tick.checked ? this.remembered ?? first : this.off.value;
    this.show(value);
    this.ask(value);
  }

  show(value, { slider = true } = {}) {
    const is_off = this.off !== null && (value === null || value === undefined || value === this.off.value);
    this.element.classList.toggle("off", is_off);
    if (this.tick) this.tick.checked = !is_off;
    this.slider.disabled = is_off || Boolean(this.idle);
    const size = this.scale.log ? value : Math.max(Math.abs(this.low), Math.abs(this.high));
    this.fit = fitting(is_off ? this.low : size, this.unit);
    if (!is_off) this.remembered = value;
    if (!this.written) {
      this.entry.value = is_off ? this.off.text : this.text?.(value) ?? inUnit(value, this.fit);
    }
    this.slider.setAttribute("aria-valuetext", this.entry.value);
    if (slider && !is_off) this.slider.value = Math.round(STEPS * Math.min(Math.max(this.scale.part(value), 0), 1));
    this.slider.style.setProperty("--part", `${is_off ? 0 : (100 * this.slider.value) / STEPS}%`);
  }
}

/** One of several, in a menu. Options: [[value, text]]. */
export class Menu extends Control {
  constructor({ id, label, tip, options = [], ask }) {
    super(ask);
    this.select = make("select", { id, "aria-label": label });
    this.element = make("div", { class: "row", tip }, make("label", { htmlFor: id }, label), this.select);
    this.offer(options);
    this.select.addEventListener("change", () => this.ask(this.select.value));
  }

  offer(options) {
    const same = JSON.stringify(options);
    if (same === this.offered) return;
    this.offered = same;
    this.select.replaceChildren(...options.map(([value, text]) => make("option", { value }, text)));
  }

  show(value) {
    this.select.value = value ?? "";
  }
}

/** One of a few, side by side. Options: [[value, text, tip]]; buttons get the ids `id_value`. */
export class Segments extends Control {
  constructor({ id, label, tip, options = [], ask }) {
    super(ask);
    this.id = id;
    this.group = make("div", { id, class: "segments", role: "radiogroup", "aria-label": label });
    this.element = make("div", { class: "row", tip }, make("span", { class: "label" }, label), this.group);
    this.offer(options);
  }

  offer(options) {
    const same = JSON.stringify(options);
    if (same === this.offered) return;
    this.offered = same;
    this.buttons = new Map(options.map(([value, text, tip]) => [value, make("button", {
      id: `${this.id}_${value}`, type: "button", role: "radio", tip,
      onclick: () => {
        this.show(value);
        this.ask(value);
      },
    }, text)]));
    this.group.replaceChildren(...this.buttons.values());
  }

  show(value) {
    for (const [own, button] of this.buttons) button.setAttribute("aria-checked", String(own === value));
  }
}

/** A button with an icon, a text or both; `key` is told beside its tip. */
export function button({ id, look, text, tip, key, press, wide = false }) {
  const element = make("button", { id, type: "button", tip, "data-key": key, class: wide ? "wide" : text ? "" : "bare",
    onclick: press }, look && icon(look), text);
  if (!text) element.setAttribute("aria-label", tip.split(/[:.]/)[0]);
  return element;
}

/** A number that is only read. */
export class Fact {
  constructor({ id, label, tip }) {
    this.value = make("span", { id, class: "value" }, "–");
    this.element = make("div", { class: "fact", tip }, make("span", { class: "label" }, label), this.value);
  }

  set(text) {
    if (this.value.textContent !== text) this.value.textContent = text;
  }
}

