/** The panel of what is seen: surface, field, and a plane through the bodies with its handle in the picture. */
import { Menu, Quantity, Segments } from "phyxel/controls.js";
import { make } from "phyxel/elements.js";
import { THRESHOLDS } from "phyxel/volumes.js";
import { add, along, boxOf, cornersOf, dot, scale } from "phyxel/vectors.js";

const SURFACES = {
  surfels: ["Surfels", "The surface as overlapping discs, lit"], mesh: ["Mesh", "The surface as triangles"],
  splats: ["Splats", "The surface as Gaussian splats"], nodes: ["Nodes", "The points inside that are moved"],
};
const NORMALS = { x: [1, 0, 0], y: [0, 1, 0], z: [0, 0, 1] };
export const PLAIN = "none";

const middle = ({ low, high }) => scale(add(low, high), 0.5);

export class Picture {
  constructor(view) {
    this.view = view;
    const show = (fields) => view.source.send("show", fields);
    this.surface = new Segments({ id: "surface", label: "Surface", tip: "What is drawn of the bodies",
      ask: (surface) => show({ surface }) });
    this.field = new Menu({ id: "field", label: "Field", tip: "A quantity inside the bodies that colours show",
      ask: (field) => show(field === PLAIN ? { field, mode: "surface" } : { field }) });
    this.mode = new Segments({ id: "mode", label: "Seen on", tip: "Whether the field is seen outside or inside",
      options: [["surface", "Surface", "The field as it is at the surface"],
        ["slice", "Slice", "The field on a plane through the bodies, as if they were cut open"],
        ["fog", "Fog", "The field all through the bodies, as coloured fog"],
        ["iso", "Iso", "The surface inside the bodies where the field has one value"]],
      ask: (mode) => show({ mode }) });
    this.axis = new Segments({ id: "axis", label: "Plane across", tip: "Which way the plane faces",
      options: Object.keys(NORMALS).map((axis) => [axis, axis, `A plane across the ${axis} axis`]),
      ask: (axis) => this.face(NORMALS[axis]) });
    this.place = new Quantity({ id: "slice", label: "Place", unit: "m", low: -1, high: 1,
      tip: "Where the plane stands along its axis; its handle in the picture moves it, too",
      ask: (where) => this.move(where) });
    this.volume = { ...THRESHOLDS };
    const threshold = (name, label, tip) => new Quantity({ id: `volume_${name}`, label, unit: "%", low: 0, high: 100,
      tip, ask: (percent) => this.limit(name, percent) });
    this.limits = {
      at: threshold("at", "Value", "The value on the iso-surface, as a share of the scale beside the picture"),
      low: threshold("low", "Fog from", "Values below this share of the scale are not shown"),
      high: threshold("high", "Fog to", "Values above this share of the scale are not shown"),
    };
    const controls = [this.surface, this.field, this.mode, this.axis, this.place, ...Object.values(this.limits)];
    this.elements = controls.map(({ element }) => element);
    this.makeHandle();
  }

  /**
   * The plane of a slice: where `facing` · X = `at` in the reference shape, which `low` and `high` bound; and where
   * the bodies have carried it, its `centre` and `normal` in the picture.
   */
  get cut() {
    const { mode, field, plane } = this.view.scene.shown ?? {}, { frame } = this.view;
    if (mode !== "slice" || !field || field === PLAIN) return null;
    if (frame?.about.plane) return frame.about.plane;
    const box = boxOf((frame?.parts ?? []).filter(({ about }) => !about.collider));
    if (!box) return null;
    const { normal, place } = plane ?? { normal: NORMALS.z, place: middle(box) };
    return { centre: place, normal, facing: normal, at: dot(place, normal), ...box };
  }

  /** Where the plane is in the picture, or where the hand has it. */
  get plane() {
    const { cut } = this;
    return cut && { normal: cut.normal, place: along(cut.centre, cut.normal, (this.dragged ?? cut.at) - cut.at) };
  }

  face(normal) {
    return this.view.source.send("slice", { normal, place: middle(this.cut) });
  }

  move(where) {
    const { facing } = this.cut;
    this.dragged = where;
    this.view.touch();
    return this.view.source.send("slice", { normal: facing, place: scale(facing, where) });
  }

  /** How far the slider goes: through the body that is cut, and never past it. */
  span(cut) {
    const corners = cornersOf(cut).map((corner) => dot(corner, cut.facing));
    const [low, high] = [Math.min(...corners), Math.max(...corners)], less = 0.02 * (high - low);
    this.place.between(low + less, high - less);
  }

  set(scene) {
    const shown = scene.shown ?? {};
    const kinds = [...new Set((scene.bodies ?? []).flatMap(({ shows }) => shows ?? []))];
    this.surface.offer(kinds.map((kind) => [kind, ...(SURFACES[kind] ?? [kind])]));
    this.surface.element.hidden = kinds.length < 2;
    this.surface.set(kinds.includes(shown.surface) ? shown.surface : kinds[0]);
    const fields = (scene.fields ?? []).filter(({ name }) => name !== PLAIN);
    this.field.offer([[PLAIN, "as it looks"], ...fields.map(({ name, title }) => [name, title ?? name])]);
    this.field.element.hidden = !fields.length;
    this.empty = kinds.length < 2 && !fields.length;
    this.field.set(shown.field ?? PLAIN);
    const coloured = shown.field && shown.field !== PLAIN;
    this.mode.element.hidden = !coloured;
    this.mode.set(shown.mode ?? "surface");
    this.tellLimits(coloured ? shown.mode : null);
    this.dragged = null;
    this.tellPlane();
  }

  /** Thresholds are the page's own: the world does not hear of them. */
  limit(name, percent) {
    this.volume[name] = Math.min(Math.max(percent / 100, 0), 1);
    this.limits[name].set(percent);
    this.view.touch();
    return 0;
  }

  tellLimits(mode) {
    for (const [name, control] of Object.entries(this.limits)) {
      control.element.hidden = mode !== (name === "at" ? "iso" : "fog");
      control.set(100 * this.volume[name]);
    }
  }

  /** Where the plane is, in the panel. */
  tellPlane() {
    const { cut } = this;
    this.axis.element.hidden = this.place.element.hidden = !cut;
    if (!cut) return;
    this.axis.set(Object.keys(NORMALS).find((name) => Math.abs(dot(NORMALS[name], cut.facing)) > 0.999));
    this.span(cut);
    this.place.set(cut.at);
  }

  makeHandle() {
    this.handle = make("button", { id: "slice_handle", type: "button", hidden: true, "aria-label": "Move the plane",
      tip: "Drag to move the plane along its axis" });
    this.handle.addEventListener("pointerdown", (event) => {
      this.handle.setPointerCapture(event.pointerId);
      this.from = { x: event.clientX, y: event.clientY, where: this.dragged ?? this.cut.at };
    });
    this.handle.addEventListener("pointermove", (event) => this.drag(event));
    for (const end of ["pointerup", "pointercancel"]) {
      this.handle.addEventListener(end, () => {
        this.from = null;
        this.place.held = false;
      });
    }
  }

  /** The pointer's way in the picture along the normal, in metres; a normal that points at the eye goes up instead. */
  drag(event) {
    if (!this.from || !this.plane) return;
    const { axis, scale } = this.direction();
    const [dx, dy] = [event.clientX - this.from.x, event.clientY - this.from.y];
    const where = this.from.where + (dx * axis[0] + dy * axis[1]) * scale;
    const within = Math.min(Math.max(where, this.place.low), this.place.high);
    this.place.held = true;
    this.place.show(within);
    cancelAnimationFrame(this.asking);
    this.asking = requestAnimationFrame(() => this.place.ask(within));
  }

  /** Unit vector of the normal in the picture and metres per pixel along it. */
  direction() {
    const { camera, canvas } = this.view, { normal, place } = this.plane;
    const seen = (point) => camera.project(point, canvas.clientWidth, canvas.clientHeight);
    const small = 0.02 * camera.distance;
    const [x, y] = seen(place), [u, v] = seen(place.map((part, axis) => part + small * normal[axis]));
    const pixels = Math.hypot(u - x, v - y);
    const across = (0.02 * canvas.clientHeight) / (2 * Math.tan((camera.fov * Math.PI) / 360));
    if (pixels < 0.2 * across) return { axis: [0, -1], scale: small / across };
    return { axis: [(u - x) / pixels, (v - y) / pixels], scale: small / pixels };
  }

  /** Keep the handle where the plane is; called for every picture. */
  follow() {
    const { plane } = this, { camera, canvas } = this.view;
    this.handle.hidden = !plane;
    if (!plane) return;
    const [x, y, depth] = camera.project(plane.place, canvas.clientWidth, canvas.clientHeight);
    const { axis } = this.direction();
    this.tellPlane();
    this.handle.hidden = depth <= 0;
    this.handle.style.transform = `translate(${x}px, ${y}px) rotate(${Math.atan2(axis[1], axis[0])}rad)`;
  }
}
