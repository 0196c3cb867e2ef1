/** The brush: what it is for, how wide it is, and its strokes. */
import { Menu, Quantity } from "phyxel/controls.js";
import { make } from "phyxel/elements.js";
import { length, subtract } from "phyxel/vectors.js";

const WIDEST = 0.5, FIRST = 0.12; // radius over the size of all bodies
const OVERLAP = 0.4; // of the radius between two touches of a stroke

export class Brush {
  constructor(view) {
    this.view = view;
    this.what = new Menu({ id: "brush_what", label: "Brush", tip: "What the brush does to a body where it goes",
      ask: (what) => this.choose(what) });
    this.radius = new Quantity({ id: "brush_radius", label: "Radius", unit: "m", low: 0.01, high: 1,
      tip: "How far around the pointer the brush reaches into the body", ask: (radius) => this.widen(radius) });
    this.element = make("div", { id: "brush", class: "bar", hidden: true }, this.what.element, this.radius.element);
  }

  /** Bodies have other presets and another size in another scene. */
  set({ bodies }) {
    const presets = [...new Set(bodies.filter(({ membrane }) => !membrane).flatMap((one) => one.preset_names ?? []))];
    this.what.offer([["melt", "melts"], ["solidify", "solidifies"], ...presets.map((name) => [name, `makes ${name}`])]);
    this.what.set(this.what.truth ?? "melt");
  }

  show(on) {
    const size = this.view.frame?.about.size ?? 1;
    this.element.hidden = !on;
    this.radius.between(0.01 * size, WIDEST * size);
    this.radius.set(this.wide ?? FIRST * size);
  }

  choose(what) {
    this.what.set(what);
    return 0;
  }

  widen(radius) {
    this.wide = radius;
    this.radius.set(radius);
    return 0;
  }

  /** A touch, unless the last one of this stroke was close by. */
  touch(hands, event, last) {
    const place = hands.under(event), radius = this.radius.truth;
    if (!place || (last && length(subtract(place, last)) < OVERLAP * radius)) return last;
    hands.aimed("brush", event, { radius, what: this.what.truth });
    return place;
  }
}
