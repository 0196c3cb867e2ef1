/** The column of panels, built from what the scene message tells; values are shown by controls that do not fight. */
import { button, Fact, Menu, Quantity, Segments } from "phyxel/controls.js";
import { describe, make } from "phyxel/elements.js";
import { Measured } from "phyxel/measured.js";
import { Picture } from "phyxel/shown.js";

const LAYOUT = "phyxel.layout"; // which panels are closed, kept by the browser
const NEVER = { value: null, text: "never" }, NONE = { value: 0, text: "none" };
const SAME = { value: null, text: "as Young" };

/** Numbers of a material: label, and what is told if it is off. Those not named here go by their own names. */
const NUMBERS = {
  young: ["Young’s modulus"], poisson: ["Poisson’s ratio"], density: ["Density"],
  damping: ["Damping", NONE], drag: ["Drag", NONE],
  yield_strain: ["Yield strain", NEVER], yield_stress: ["Yield stress", NEVER],
  creep: ["Creep", { value: null, text: "at once" }], max_strain: ["Largest strain"],
  viscosity: ["Viscosity", { value: null, text: "solid" }],
  strength: ["Strength", NEVER], strength_scatter: ["Scatter", NONE],
  thickness: ["Thickness"], foundation: ["Foundation", NONE], plasticity: ["Plasticity", NONE],
  elastic_limit: ["Elastic limit", NONE], weft: ["Weft", SAME], shear: ["Shear", SAME],
  bending: ["Bending", SAME],
};
const FLOW = ["yield_strain", "yield_stress", "plasticity", "elastic_limit", "creep", "max_strain", "viscosity"];
const CRACKS = ["strength", "strength_scatter"];
/** Where a number begins when it is switched on, so that one sees what it does: a stress goes by the stiffness. */
const STARTS = { strength: ({ young }) => 0.1 * young, yield_stress: ({ young }) => 0.03 * young };
const AXES = [
  ["down", "↓", [0, -1, 0]], ["up", "↑", [0, 1, 0]], ["left", "←", [-1, 0, 0]], ["right", "→", [1, 0, 0]],
  ["back", "−z", [0, 0, -1]], ["front", "+z", [0, 0, 1]],
];
const MELT = "Make it a thick fluid: it forgets its shape and flows at the rate its viscosity allows";
const WAYS = {
  left: "to the left, −x", right: "to the right, +x", back: "to the back, −z", front: "to the front, +z",
};

function remembered() {
  try {
    return JSON.parse(localStorage.getItem(LAYOUT)) ?? {};
  } catch {
    return {}; // a page opened as a file may have no storage
  }
}

function remember(name, open) {
  try {
    localStorage.setItem(LAYOUT, JSON.stringify({ ...remembered(), [name]: open }));
  } catch {
    // then the layout is as new next time
  }
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** A panel that can be closed and is found as it was left. */
function panel(name, title, ...content) {
  const element = make("details", { id: `panel_${name}`, class: "panel", open: remembered()[name] ?? true },
    make("summary", {}, title), make("div", { class: "content" }, ...content));
  element.addEventListener("toggle", () => remember(name, element.open));
  return element;
}

/** Why a number of a material has no effect on a body now; nothing if it has one. */
function idle(name, { material, molten, cannot = {} }) {
  const does = FLOW.includes(name) ? "yield" : CRACKS.includes(name) ? "crack" : null;
  if (does && cannot[does]) return sentence(cannot[does]);
  const lacks = (...names) => names.every((own) => (material[own] ?? null) === null);
  if (["creep", "max_strain"].includes(name) && !molten && lacks("yield_strain", "yield_stress")) {
    return "Only for what yields: switch on a yield strain or a yield stress first";
  }
  if (name === "strength_scatter" && lacks("strength")) return "Only for what cracks: switch on a strength first";
  return "";
}

export class Panels {
  constructor(view, element) {
    Object.assign(this, { view, element, chosen: null, quantities: new Map(), presets: new Map() });
    this.makeBody();
    this.makeMaterial();
    this.makeSurroundings();
    this.makeShare();
    this.picture = new Picture(view);
    this.measured = new Measured(view);
    this.panels = {
      body: panel("body", "Body", this.chooser.element, this.model.element, this.nodes.element, this.surfels.element),
      material: panel("material", "Material", this.preset.element, this.elastic),
      flow: panel("flow", "Plasticity and melt", this.flow,
        make("div", { class: "buttons" }, this.melt, this.solidify)),
      crack: panel("crack", "Cracks", this.cracks),
      surroundings: panel("surroundings", "Gravity", this.gravity.element, this.direction.element),
      picture: panel("picture", "Picture", ...this.picture.elements),
      measured: panel("measured", "Measured", ...this.measured.elements),
      share: panel("share", "Share", make("div", { class: "buttons" }, this.save, this.record, this.html)),
    };
    element.replaceChildren(...Object.values(this.panels));
  }

  get body() {
    const { bodies } = this.view.scene;
    return bodies.find(({ name }) => name === this.chosen) ?? bodies[0];
  }

  send(what, fields = {}) {
    return this.view.source.send(what, { body: this.body.name, ...fields });
  }

  makeBody() {
    this.chooser = new Menu({ id: "body", label: "Body", tip: "Whose numbers the panels below show and change",
      ask: (name) => this.choose(name) });
    this.model = new Menu({ id: "model", label: "Model",
      tip: "How its motion is computed: every node by itself, or by a few shapes it can take. It begins anew at rest",
      ask: (model) => this.send("model", { model }) });
    this.nodes = new Fact({ id: "nodes", label: "Nodes", tip: "Points inside the body that carry mass and are moved" });
    this.surfels = new Fact({ id: "body_surfels", label: "Surfels",
      tip: "Small discs on its surface, carried along by the nodes, that you see" });
  }

  makeMaterial() {
    this.preset = new Menu({ id: "preset", label: "Preset",
      tip: "All numbers of a real material at once, from data sheets",
      ask: (name) => {
        this.presets.set(this.body.name, name);
        return name ? this.send("preset", { name }) : 0;
      } });
    this.elastic = make("div", { class: "stack" });
    this.flow = make("div", { class: "stack" });
    this.cracks = make("div", { class: "stack" });
    this.melt = button({ id: "melt", look: "melt", text: "Melt", press: () => this.send("melt"), tip: MELT });
    this.solidify = button({ id: "solidify", look: "solidify", text: "Solidify", press: () => this.send("solidify"),
      tip: "Make it elastic again; the shape it has now becomes its own" });
  }

  makeSurroundings() {
    this.gravity = new Quantity({ id: "gravity", label: "Gravity", unit: "m/s²", low: 0, high: 25, off: NONE,
      tip: "How strongly everything falls: Moon 1.62, Mars 3.7, Earth 9.81, Jupiter 24.8 m/s²",
      ask: (size) => this.fall(size, this.down) });
    this.direction = new Segments({ id: "direction", label: "Direction", tip: "Where things fall to",
      options: AXES.map(([name, text]) => [name, text, `Everything falls ${WAYS[name] ?? name}`]),
      ask: (name) => this.fall(this.pull || 9.81, AXES.find(([own]) => own === name)[2]) });
  }

  fall(size, down) {
    return this.view.source.send("gravity", { value: down.map((part) => part * size) });
  }

  makeShare() {
    this.save = button({ id: "save", look: "save", text: "Save scene", wide: true,
      tip: "Save the scene with all that your hands did as a TOML file; phyxel run makes the same motion from it",
      press: () => this.view.source.send("save", { camera: this.view.sight }) });
    this.record = button({ id: "record", look: "record", text: "Record", wide: true,
      tip: "Record what is seen from now on, to be saved as a page",
      press: () => this.view.source.send("record", { on: !this.view.scene.recording }) });
    this.html = button({ id: "html", look: "html", text: "Save as HTML", wide: true,
      tip: "Save the recording as one file that plays in any browser, with no network",
      press: () => this.view.source.send("html", { camera: this.view.sight }) });
  }

  choose(name) {
    this.chosen = name;
    this.set(this.view.scene);
    return 0;
  }

  /** A scene message came: structure anew only where it changed, values always. */
  set(scene) {
    const live = scene.mode === "live", saved = scene.mode === "saved", { body } = this;
    for (const name of ["body", "material", "flow", "crack", "surroundings"]) this.panels[name].hidden = !live || !body;
    this.panels.share.hidden = saved;
    this.save.hidden = !live;
    this.record.setAttribute("aria-pressed", String(Boolean(scene.recording)));
    this.record.lastChild.textContent = scene.recording ? "Stop recording" : "Record";
    this.picture.set(scene);
    this.panels.picture.hidden = saved || this.picture.empty;
    this.measured.set(scene);
    if (!live || !body) return;
    this.setBody(scene, body);
    this.setMaterial(scene, body);
    this.setGravity(scene.gravity);
  }

  setBody(scene, body) {
    this.chooser.element.hidden = scene.bodies.length < 2;
    this.chooser.offer(scene.bodies.map(({ name }) => [name, name]));
    this.chooser.show(body.name);
    this.model.offer((scene.models ?? []).map((name) => [name, name]));
    this.model.set(body.model);
    this.nodes.set(body.nodes.toLocaleString("en"));
    this.surfels.set(body.surfels.toLocaleString("en"));
  }

  setMaterial(scene, body) {
    const names = Object.keys(body.material).filter((name) => scene.units[name]);
    const structure = JSON.stringify([body.name, names, scene.units]);
    if (structure !== this.structure) this.makeQuantities(scene.units, names);
    this.structure = structure;
    for (const name of names) {
      const quantity = this.quantities.get(name);
      quantity.set(body.material[name]);
      quantity.rest(idle(name, body));
      // Cloth that has a weft of its own keeps one: the world knows no way back.
      if (quantity.off === SAME) quantity.tick.disabled = body.material[name] !== null;
    }
    this.preset.offer([["", "choose …"], ...(body.preset_names ?? []).map((name) => [name, name])]);
    this.preset.set(this.presets.get(body.name) ?? "");
    const cold = body.cannot?.melt;
    this.melt.disabled = Boolean(body.molten || cold);
    this.solidify.disabled = !body.molten;
    describe(this.melt, cold ? sentence(cold) : MELT);
    for (const element of [this.melt, this.solidify]) element.hidden = Boolean(body.membrane);
    this.panels.flow.hidden = !this.flow.children.length && Boolean(body.membrane);
    this.panels.crack.hidden = !this.cracks.children.length;
  }

  makeQuantities(units, names) {
    this.quantities = new Map(names.map((name) => [name, this.quantity(name, units[name])]));
    const groups = [this.elastic, this.flow, this.cracks];
    const group = (name) => (FLOW.includes(name) ? this.flow : CRACKS.includes(name) ? this.cracks : this.elastic);
    groups.forEach((stack) => stack.replaceChildren());
    for (const [name, { element }] of this.quantities) group(name).append(element);
  }

  quantity(name, [unit, low, high, tip]) {
    const [label = name.replace("_", " "), off = null] = NUMBERS[name] ?? [];
    const start = STARTS[name] && (() => STARTS[name](this.body.material));
    return new Quantity({ id: name, label, unit, low, high, off, start, tip: sentence(tip), ask: (value) => {
      this.presets.delete(this.body.name);
      this.preset.set("");
      return this.send("material", { numbers: { [name]: value } });
    } });
  }

  setGravity(value) {
    const size = Math.hypot(...value);
    if (size > 0) [this.pull, this.down] = [size, value.map((part) => part / size)];
    this.down ??= [0, -1, 0];
    this.gravity.set(Number(size.toPrecision(6)));
    const along = ([, , axis]) => axis.every((part, k) => Math.abs(part - this.down[k]) < 1e-6);
    this.direction.set(AXES.find(along)?.[0]);
  }
}
