/** The colour bar of a field: title, unit, ticks. */
import { make } from "phyxel/elements.js";

export class Legend {
  constructor() {
    this.title = make("div", { class: "title" });
    this.bar = make("div", { class: "ramp" });
    this.ticks = make("div", { class: "ticks" });
    this.element = make("figure", { id: "legend", hidden: true, tip: "Which value of the field a colour stands for" },
      this.title, make("div", { class: "body" }, this.bar, this.ticks));
  }

  set(legend) {
    this.element.hidden = !legend;
    const same = legend && JSON.stringify([legend.title, legend.unit, legend.low, legend.high, legend.ticks]);
    if (!legend || same === this.shown) return;
    this.shown = same;
    const { title, unit, low, high, colors, ticks } = legend;
    this.title.textContent = unit ? `${title} [${unit}]` : title;
    const stops = colors.map((color) => `rgb(${color.join(" ")})`);
    this.bar.style.background = `linear-gradient(to top, ${stops.join(", ")})`;
    this.ticks.replaceChildren(...ticks.map(([value, text]) => {
      const tick = make("span", {}, text);
      tick.style.bottom = `${(100 * (value - low)) / (high - low || 1)}%`;
      return tick;
    }));
  }
}
