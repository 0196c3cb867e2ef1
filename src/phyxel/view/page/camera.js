/** A camera that orbits about what it looks at, with y up. Lengths in metres, angles in degrees where named so. */

import { add, along, boxOf, cornersOf, cross, dot, length, mix, scale, subtract, unit } from "phyxel/vectors.js";

const STEEPEST = (89.5 * Math.PI) / 180;
const GLIDE = 0.055; // seconds in which what is left of a zoom falls to a third
const FLIGHT = 0.5; // seconds that it takes to fly to another view

/** Where to look from, by name: angles as `Orbit` has them. */
export const VIEWS = {
  front: { turn: 0, lift: 0 }, side: { turn: Math.PI / 2, lift: 0 }, top: { turn: 0, lift: STEEPEST },
};

/**
 * What is free of a picture: `aspect`, width over height of all of it but for what lies on its sides; `covered`, the
 * share of its height that bars above and below cover; `raised`, by how much those below cover more than those above.
 */
const FREE = { aspect: 1.6, covered: 0, raised: 0 };

/** How much farther off what filled a picture of aspect `wide` fills what is free of another. */
const backward = ({ aspect, covered }, wide) => Math.max(1 / (1 - covered), wide / aspect);

export class Orbit {
  constructor({ eye, target, fov = 32 } = { eye: [0.6, 0.4, 1], target: [0, 0, 0] }) {
    this.place({ eye, target, fov });
  }

  place({ eye, target, fov = this.fov }) {
    const way = subtract(eye, target);
    this.target = [...target];
    this.fov = fov;
    this.distance = length(way) || 1;
    this.turn = Math.atan2(way[0], way[2]);
    this.lift = Math.max(-STEEPEST, Math.min(STEEPEST, Math.asin(way[1] / this.distance)));
    this.first ??= { eye: [...eye], target: [...target], fov };
    this.pending = this.flight = null;
  }

  /** Back to where it began. */
  reset() {
    this.place(this.first);
  }

  /** From the target to the eye, 1 long. */
  get back() {
    const level = Math.cos(this.lift);
    return [level * Math.sin(this.turn), Math.sin(this.lift), level * Math.cos(this.turn)];
  }

  get eye() {
    return along(this.target, this.back, this.distance);
  }

  /** Where it looks. */
  get ahead() {
    return scale(this.back, -1);
  }

  get right() {
    return [Math.cos(this.turn), 0, -Math.sin(this.turn)];
  }

  get up() {
    return cross(this.back, this.right);
  }

  /** By pixels of the pointer: a stroke of 600 turns it half about. It stops short of the poles. */
  orbit(dx, dy) {
    this.flight = null;
    this.turn -= (dx * Math.PI) / 600;
    this.lift = Math.max(-STEEPEST, Math.min(STEEPEST, this.lift + (dy * Math.PI) / 600));
  }

  /** Turn about another point and keep its place in the picture. */
  orbitAbout(pivot, dx, dy) {
    const offset = subtract(this.target, pivot);
    const seen = [this.right, this.up, this.back].map((axis) => dot(offset, axis));
    this.orbit(dx, dy);
    this.target = [this.right, this.up, this.back].reduce((sum, axis, k) => along(sum, axis, seen[k]), pivot);
  }

  /** By parts of the picture's height: what is at the target's depth stays under the pointer. */
  pan(dx, dy) {
    this.flight = null;
    const tall = 2 * this.distance * Math.tan((this.fov * Math.PI) / 360);
    this.target = along(along(this.target, this.right, -dx * tall), this.up, dy * tall);
  }

  /** Bring what is seen nearer by this factor (> 1) or farther, at once, and keep `toward` [m] where it is. */
  zoom(factor, toward = this.target) {
    const distance = Math.max(1e-6, Math.min(1e6, this.distance / factor));
    this.target = mix(toward, this.target, distance / this.distance);
    this.distance = distance;
  }

  /** The same, gliding there: `settle` does what is left. */
  glide(factor, toward = null) {
    this.flight = null;
    const left = this.pending?.left ?? 0;
    this.pending = { left: left + Math.log(factor), toward: toward ?? this.target };
  }

  /** Go on gliding for some seconds; whether there is more to come. */
  settle(seconds) {
    if (this.flight) return this.#fly(Math.min(seconds, 0.1));
    if (!this.pending) return false;
    const share = 1 - Math.exp(-Math.min(seconds, 0.1) / GLIDE);
    const last = Math.abs(this.pending.left) < 1e-3;
    const step = last ? this.pending.left : share * this.pending.left;
    this.zoom(Math.exp(step), this.pending.toward);
    this.pending.left -= step;
    if (last) this.pending = null;
    return !last;
  }

  /** See all of a box in what is free of the picture, from where it looks now or from one of `VIEWS`, at once. */
  fit(box, { aspect, covered, raised } = FREE, { turn, lift } = this) {
    Object.assign(this, { turn, lift, pending: null, flight: null });
    const tall = Math.tan((this.fov * Math.PI) / 360);
    this.target = scale(add(box.low, box.high), 0.5);
    this.distance = 1e-6;
    for (const corner of cornersOf(box)) {
      const p = subtract(corner, this.target);
      const reach = Math.max(Math.abs(dot(p, this.right)) / aspect, Math.abs(dot(p, this.up)) / (1 - covered)) / tall;
      this.distance = Math.max(this.distance, 1.15 * reach + dot(p, this.back));
    }
    this.raise(raised);
  }

  /** The same, flying there: `settle` does what is left, until a hand moves the camera. */
  flyTo(box, room, view = this) {
    const from = this.#pose;
    this.fit(box, room, view);
    const to = this.#pose, about = Math.round((to.turn - from.turn) / (2 * Math.PI));
    this.flight = { from, to: { ...to, turn: to.turn - 2 * Math.PI * about }, gone: null };
    Object.assign(this, from);
  }

  get #pose() {
    const { turn, lift, distance, target } = this;
    return { turn, lift, distance, target };
  }

  /** Time since the picture before does not count at the start: there may have been none for long. */
  #fly(seconds) {
    const { from, to, gone } = this.flight, now = gone === null ? 0 : Math.min(gone + seconds / FLIGHT, 1);
    const part = now * now * (3 - 2 * now), between = (a, b) => a + (b - a) * part;
    this.flight.gone = now;
    this.turn = between(from.turn, to.turn);
    this.lift = between(from.lift, to.lift);
    this.distance = Math.exp(between(Math.log(from.distance), Math.log(to.distance)));
    this.target = mix(from.target, to.target, part);
    if (now === 1) this.flight = null;
    return Boolean(this.flight);
  }

  /** Step back and look lower, until what filled a picture of aspect `wide` fills what is free of this one. */
  uncover(room, wide) {
    this.distance *= backward(room, wide);
    this.raise(room.raised);
  }

  /** Eye, target and field of view of the camera that `uncover` would make this one of. */
  covered(room, wide) {
    const target = this.lowered(-room.raised);
    return { eye: along(target, this.back, this.distance / backward(room, wide)), target, fov: this.fov };
  }

  /** Show what is in the middle of the picture higher by half this share of its height. */
  raise(share) {
    this.target = this.lowered(share);
  }

  lowered(share) {
    return along(this.target, this.up, -share * this.distance * Math.tan((this.fov * Math.PI) / 360));
  }

  /** From the eye through a place (x, y) of a picture of this width and height: origin [m] and unit direction. */
  ray(x, y, width, height) {
    const tall = Math.tan((this.fov * Math.PI) / 360);
    const across = tall * ((2 * x - width) / height), up = tall * (1 - (2 * y) / height);
    return { ray: this.eye, way: unit(along(along(this.ahead, this.right, across), this.up, up)) };
  }

  /** Where in such a picture a point is: [x, y, depth]; depth <= 0 is behind the eye. */
  project(point, width, height) {
    const offset = subtract(point, this.eye), depth = dot(offset, this.ahead);
    const focal = (0.5 * height) / Math.tan((this.fov * Math.PI) / 360) / depth;
    return [0.5 * width + focal * dot(offset, this.right), 0.5 * height - focal * dot(offset, this.up), depth];
  }

  /** The rectangle [x, y, width, height], y up, that holds points: all of the picture if some are close to the eye. */
  bounds(points, width, height) {
    const seen = points.map((point) => this.project(point, width, height));
    if (seen.some(([, , depth]) => depth < 0.05 * this.distance)) return [0, 0, width, height];
    const clip = (value, most) => Math.max(0, Math.min(most, value));
    const ends = (k, most) => [Math.min, Math.max].map((pick) => clip(pick(...seen.map((at) => at[k])), most));
    const [left, right] = ends(0, width), [top, bottom] = ends(1, height);
    return [Math.floor(left), Math.floor(height - bottom), Math.ceil(right - left) + 1, Math.ceil(bottom - top) + 1];
  }

  /**
   * Matrices (column after column) that see from `near` to `far`. `view` counts from the target, `base`: single
   * precision is enough about what is looked at, not about the world.
   */
  matrices(aspect, near = 0.01 * this.distance, far = 100 * this.distance) {
    const { right, up, back } = this, tall = Math.tan((this.fov * Math.PI) / 360);
    const view = [right[0], up[0], back[0], 0, right[1], up[1], back[1], 0, right[2], up[2], back[2], 0,
      0, 0, -this.distance, 1];
    const sum = -(far + near) / (far - near), product = (-2 * far * near) / (far - near);
    const projection = [1 / (tall * aspect), 0, 0, 0, 0, 1 / tall, 0, 0, 0, 0, sum, -1, 0, 0, product, 0];
    return { view, projection, base: this.target, near, far, tall, aspect };
  }
}
