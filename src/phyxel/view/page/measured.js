/** The panel of what is measured: plots of energy, volume and milliseconds, and a few numbers. */
import { Fact } from "phyxel/controls.js";
import { Plot } from "phyxel/plots.js";
import { digits } from "phyxel/quantities.js";

const STAGES = [
  ["physics", "physics", "Moving the nodes"], ["surface", "surface", "Carrying the surface along"],
  ["encoding", "encoding", "Making what is sent of it"], ["sending", "sending", "Handing it to the network"],
];

export class Measured {
  constructor(view) {
    this.view = view;
    this.energy = new Plot({ id: "energy", title: "Energy", unit: "J", above: "potential",
      tip: "Energy of all bodies: it goes from one kind to another, and damping takes some of it away",
      series: [["kinetic", "kinetic", "Energy of motion, ½ m v²"],
        ["elastic", "elastic", "Energy of deformation, which the bodies give back"],
        ["potential", "potential", "Energy of height in gravity, above the least there was"]] });
    this.volume = new Plot({ id: "volume", title: "Volume", around: 1, format: (value) => `${digits(100 * value)} %`,
      tip: "Volume of all bodies over what it was at first; a Poisson’s ratio near 0.5 keeps it",
      series: [["volume", "", "Now"]] });
    this.cost = new Plot({ id: "milliseconds", title: "Time of an update", stacked: true,
      tip: "What the machine works for each picture, by stage",
      format: (value) => `${digits(value)} ms`, series: STAGES });
    this.surfels = new Fact({ id: "surfels", label: "Surfels",
      tip: "Discs of surface that are sent for each picture" });
    this.latency = new Fact({ id: "latency", label: "Hand to picture",
      tip: "Time from a move of your pointer to the picture that shows what it did" });
    this.plots = [this.energy, this.volume, this.cost];
    this.elements = [...this.plots, this.surfels, this.latency].map(({ element }) => element);
  }

  set(scene) {
    const recorded = scene.mode !== "live";
    this.cost.element.hidden = this.latency.element.hidden = this.surfels.element.hidden = recorded;
    this.cover(recorded && !this.energy.useful);
  }

  cover(hidden) {
    const owner = this.energy.element.closest("details");
    if (owner) owner.hidden = hidden;
  }

  history(message) {
    for (const plot of [this.energy, this.volume]) plot.all(message);
    this.cover(!this.energy.useful);
  }

  add(numbers) {
    const { time, surfels, milliseconds = {} } = numbers;
    for (const plot of [this.energy, this.volume]) {
      if (plot.whole) plot.at(time);
      else plot.add(numbers);
    }
    this.cost.add(milliseconds);
    this.surfels.set((surfels ?? 0).toLocaleString("en"));
    const { latency } = this.view.source;
    this.latency.set(latency === null ? "–" : `${Math.round(latency)} ms`);
    if (this.energy.canvas.checkVisibility?.() ?? true) for (const plot of this.plots) plot.draw();
  }

  begin() {
    for (const plot of this.plots) if (!plot.whole) plot.clear();
  }
}
