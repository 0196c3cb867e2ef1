/** Small plots on canvas: lines over time, or stacked areas; the last seconds, or all of a run with a cursor. */
import { make } from "phyxel/elements.js";
import { written } from "phyxel/quantities.js";

const LAST = 150; // samples of a live plot: 15 s of them

export class Plot {
  /**
   * `series`: [[name, text, tip]]; `unit` of all; `stacked` areas instead of lines; `around`: what stays
   * in the middle; `above`: the one that counts from the least it had; `format(value)` as text.
   */
  constructor({ id, title, tip, series, unit = "", stacked = false, around = null, above = null, format = null }) {
    Object.assign(this, { series, stacked, around, format: format ?? ((value) => written(value, unit)) });
    this.above = series.findIndex(([name]) => name === above);
    this.canvas = make("canvas", { id, class: "plot" });
    this.readings = new Map(series.map(([name, text, words], k) => {
      const value = make("span", { id: `${id}_${name}`, class: "value" }, "–");
      return [name, { value, element: make("span", { class: `reading tone${k}`, tip: words }, text, " ", value) }];
    }));
    const readings = make("div", { class: "readings" }, ...[...this.readings.values()].map(({ element }) => element));
    this.sum = make("span", { id: `${id}_sum`, class: "value" });
    this.element = make("figure", { class: "figure" },
      make("figcaption", { tip }, make("span", { class: "label" }, title), series.length > 1 ? this.sum : readings),
      this.canvas, series.length > 1 ? readings : null);
    this.clear();
  }

  clear() {
    this.whole = null;
    this.cursor = null;
    this.samples = [];
    this.least = Infinity;
  }

  row(read) {
    const values = this.series.map(([name]) => read(name) ?? NaN);
    if (values[this.above] < this.least) this.least = values[this.above];
    return values;
  }

  /** As they are drawn and told: some count from the least they had. */
  seen(values) {
    return this.above < 0 ? values : values.map((value, k) => (k === this.above ? value - this.least : value));
  }

  /** One more sample: {name: value}. */
  add(values) {
    if (this.whole) return;
    this.samples.push(this.row((name) => values[name]));
    if (this.samples.length > LAST) this.samples.shift();
    this.read(this.samples.at(-1));
  }

  /** All of a run at once: {time: [...], name: [...]}. */
  all(history) {
    this.whole = history.time;
    this.samples = history.time.map((_, k) => this.row((name) => history[name]?.[k]));
  }

  /** In a plot of the whole: the time that is shown. */
  at(time) {
    if (!this.whole?.length) return;
    this.cursor = time;
    const after = this.whole.findIndex((moment) => moment > time);
    this.read(this.samples[(after < 0 ? this.whole.length : Math.max(after, 1)) - 1]);
  }

  read(row) {
    const values = this.seen(row);
    this.series.forEach(([name], k) => {
      const text = Number.isFinite(values[k]) ? this.format(values[k]) : "–";
      const { value } = this.readings.get(name);
      if (value.textContent !== text) value.textContent = text;
    });
    this.sum.textContent = this.format(sum(values));
  }

  get useful() {
    return this.samples.some((values) => values.some(Number.isFinite));
  }

  range(rows) {
    const values = this.stacked ? rows.map((row) => sum(row)) : rows.flat();
    const finite = values.filter(Number.isFinite);
    let low = this.stacked ? 0 : Math.min(...finite), high = Math.max(...finite);
    if (this.around !== null) {
      const reach = Math.max(Math.abs(high - this.around), Math.abs(this.around - low), 0.005);
      [low, high] = [this.around - reach, this.around + reach];
    }
    if (!(high > low)) [low, high] = [low - Math.abs(low) * 0.1 - 1e-9, high + Math.abs(high) * 0.1 + 1e-9];
    return [low, high];
  }

  draw() {
    const { canvas } = this;
    const { clientWidth: width, clientHeight: height } = canvas;
    if (!width || !this.useful) return;
    const ratio = devicePixelRatio;
    if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
    if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    const ink = getComputedStyle(canvas);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const rows = this.samples.map((row) => this.seen(row));
    const [low, high] = this.range(rows);
    const across = this.across(width);
    const up = (value) => height - 2 - ((value - low) / (high - low)) * (height - 4);
    this.grid(pen, ink, width, up, low, high);
    if (this.stacked) this.areas(pen, ink, rows, across, up);
    else this.lines(pen, ink, rows, across, up);
    if (this.cursor !== null) this.mark(pen, ink, width, height);
  }

  across(width) {
    if (!this.whole) return (k) => width - ((this.samples.length - 1 - k) / (LAST - 1)) * width;
    const [first, last] = [this.whole[0], this.whole.at(-1)];
    return (k) => ((this.whole[k] - first) / (last - first || 1)) * width;
  }

  grid(pen, ink, width, up, low, high) {
    const level = this.around ?? (low < 0 && high > 0 ? 0 : null);
    if (level === null) return;
    pen.strokeStyle = ink.getPropertyValue("--line");
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(0, Math.round(up(level)) + 0.5);
    pen.lineTo(width, Math.round(up(level)) + 0.5);
    pen.stroke();
  }

  lines(pen, ink, rows, across, up) {
    pen.lineWidth = 1.5;
    pen.lineJoin = "round";
    this.series.forEach((_, which) => {
      pen.strokeStyle = ink.getPropertyValue(`--tone${which}`);
      pen.beginPath();
      rows.forEach((row, k) => Number.isFinite(row[which]) && pen.lineTo(across(k), up(row[which])));
      pen.stroke();
    });
  }

  areas(pen, ink, rows, across, up) {
    const floors = rows.map(() => 0);
    this.series.forEach((_, which) => {
      const roofs = rows.map((row, k) => floors[k] + (Number.isFinite(row[which]) ? row[which] : 0));
      pen.fillStyle = ink.getPropertyValue(`--tone${which}`);
      pen.beginPath();
      roofs.forEach((roof, k) => pen.lineTo(across(k), up(roof)));
      for (let k = floors.length - 1; k >= 0; k--) pen.lineTo(across(k), up(floors[k]));
      pen.fill();
      roofs.forEach((roof, k) => (floors[k] = roof));
    });
  }

  mark(pen, ink, width, height) {
    const [first, last] = [this.whole[0], this.whole.at(-1)];
    const x = ((this.cursor - first) / (last - first || 1)) * width;
    pen.fillStyle = ink.getPropertyValue("--text");
    pen.fillRect(Math.min(Math.max(x - 0.5, 0), width - 1), 0, 1, height);
  }
}

const sum = (row) => row.reduce((total, value) => total + (Number.isFinite(value) ? value : 0), 0);
