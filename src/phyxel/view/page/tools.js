/** Hands: what pointers on the picture do. One gesture at a time; several fingers move the camera. */
import { pick } from "phyxel/pick.js";
import { along, length, scale } from "phyxel/vectors.js";

export const TOOLS = [
  { name: "grab", text: "Grab", tip: "Drag a body: what you took follows the pointer; let go and it keeps its speed" },
  { name: "pin", text: "Pin", tip: "Click a body to nail that spot where it is; click the nail to draw it again" },
  { name: "push", text: "Push", tip: "Press on a body with a steady force away from you, as long as you hold" },
  { name: "cut", text: "Cut", tip: "Draw a stroke across a body and it is cut there, straight away from you" },
  { name: "brush", text: "Brush", tip: "Paint over a body: there it melts, or becomes another material" },
];

const CLICK = 6; // [px] a pointer may wander and still have clicked
const NOTCH = 0.0013; // zoom per pixel of the wheel, in logarithms
const TWIST = 0.0025, TURN = Math.PI / 300; // [rad] by which what is held turns per pixel of the wheel, of the pointer
const HELD = 250; // [ms] after which a second finger turns what the first holds

export class Hands {
  /** `view` is the page: {canvas, camera, source, frame, live, hover, touch()}; `picked(tool)` hears of choices. */
  constructor(view, { stroke, picked }) {
    Object.assign(this, { view, stroke, picked, tool: "grab", orbiting: false, gesture: null, aim: null });
    this.pointers = new Map();
    const canvas = view.canvas;
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, (event) => this.up(event));
    canvas.addEventListener("pointerleave", () => this.point(null));
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("dblclick", (event) => this.twice(event));
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  }

  choose(tool) {
    this.finish(false);
    this.tool = tool;
    this.picked(tool);
    this.point(this.aim);
  }

  /** The ray through a pointer, as commands have it. */
  ray(event) {
    const { left, top, width, height } = this.view.canvas.getBoundingClientRect();
    return this.view.camera.ray(event.clientX - left, event.clientY - top, width, height);
  }

  /** What is under a pointer, or else the point there that is as far away as what the camera looks at. */
  depthOf(event) {
    const { ray, way } = this.ray(event), { distance } = this.view.camera;
    return pick(this.view.frame, ray, way) ?? ray.map((origin, axis) => origin + way[axis] * distance);
  }

  under(event) {
    if (!this.view.live) return null;
    const { ray, way } = this.ray(event);
    return pick(this.view.frame, ray, way);
  }

  down(event) {
    const canvas = this.view.canvas;
    canvas.focus({ preventScroll: true });
    canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, event);
    if (this.pointers.size === 2 && this.gesture?.heldFor?.(event) > HELD) return;
    if (this.pointers.size > 1) {
      this.finish(true);
      this.gesture = new Fingers(this);
    } else if (!this.gesture) this.gesture = this.begin(event);
    this.aim = this.view.hover = null;
    canvas.dataset.doing = this.gesture.name;
  }

  begin(event) {
    const turned = this.orbiting || event.altKey || !this.view.live;
    if (event.button > 0 || event.shiftKey) return new Move(this, event, "pan");
    if (turned) return new Move(this, event, "orbit");
    if (this.tool === "cut") return new Cut(this, event);
    const place = this.under(event);
    if (!place) return new Move(this, event, "orbit");
    if (this.tool === "grab") return new Grab(this, event);
    if (this.tool === "push") return new Push(this, event);
    if (this.tool === "brush") return new Stroke(this, event);
    return new Move(this, event, "orbit", () => this.aimed("pin", event));
  }

  aimed(what, event, more = {}) {
    return this.view.source.send(what, { ...this.ray(event), ...more }, event.timeStamp);
  }

  move(event) {
    if (!this.pointers.has(event.pointerId)) return this.point(event);
    this.gesture?.move(event, this.pointers.get(event.pointerId));
    this.pointers.set(event.pointerId, event);
    this.view.touch();
  }

  up(event) {
    if (!this.pointers.delete(event.pointerId)) return;
    const going = this.gesture instanceof Grab ? this.pointers.has(this.gesture.latest.pointerId) : this.pointers.size;
    if ((this.gesture instanceof Fingers || this.gesture instanceof Grab) && going) return;
    this.finish(event.type === "pointercancel", event);
  }

  /** End what is being done; what was cancelled is let go, not pinned, not cut. */
  finish(cancelled, event = null) {
    this.gesture?.end(cancelled, event);
    this.gesture = null;
    delete this.view.canvas.dataset.doing;
    this.view.touch();
  }

  /** Pin what is held where it is. */
  pinHeld() {
    if (!(this.gesture instanceof Grab)) return false;
    this.gesture.pin = true;
    this.finish(false);
    return true;
  }

  twice(event) {
    if (this.view.live && !this.orbiting && this.tool === "grab" && this.under(event)) this.aimed("pin", event);
  }

  wheel(event) {
    event.preventDefault();
    const pixels = event.deltaY * (event.deltaMode === 1 ? 20 : 1) * (event.ctrlKey ? 6 : 1);
    if (this.gesture instanceof Grab) return this.gesture.turn(this.view.camera.ahead, pixels * TWIST);
    this.view.camera.glide(Math.exp(Math.min(Math.max(-pixels * NOTCH, -0.5), 0.5)), this.depthOf(event));
    this.view.touch();
  }

  /** A resting pointer at most marks what it could take; looked up once for each picture. */
  point(event) {
    this.aim = event && event.pointerType !== "touch" ? event : null;
    this.aimMoved = true;
  }

  /** Once for each picture: commands that follow the pointer, and the mark under it. */
  frame(fresh) {
    this.gesture?.frame?.();
    if (!(this.aimMoved || (fresh && this.aim)) || this.gesture) return;
    this.aimMoved = false;
    const cutting = this.tool === "cut", turning = this.orbiting || this.aim?.altKey;
    const hover = this.aim && !cutting && !turning ? this.under(this.aim) : null;
    if (hover || this.view.hover) this.view.touch();
    this.view.hover = hover;
    this.view.canvas.dataset.aim = hover ? this.tool : cutting && !turning ? "cut" : "look";
  }
}

/** Looking around: orbit or pan; `clicked` if the pointer hardly moved. */
class Move {
  constructor(hands, event, name, clicked = null) {
    Object.assign(this, { hands, name, clicked, from: event });
  }

  move(event, before) {
    if (this.clicked && apart(event, this.from) < CLICK) return;
    this.clicked = null;
    const { camera, canvas } = this.hands.view;
    const unit = this.name === "pan" ? canvas.clientHeight : 1;
    camera[this.name]((event.clientX - before.clientX) / unit, (event.clientY - before.clientY) / unit);
  }

  end(cancelled) {
    if (!cancelled) this.clicked?.();
  }
}

/** What follows the pointer tells so once for each picture. */
class Following {
  constructor(hands, event) {
    Object.assign(this, { hands, latest: event, moved: false });
  }

  move(event) {
    this.latest = event;
    this.moved = true;
  }
}

/** What is held goes with the pointer; the wheel, Alt, the right button or a second finger turn it. */
class Grab extends Following {
  name = "grab";
  pin = false;
  spin = [0, 0, 0]; // a rotation vector [rad] that the world has not been told of
  aside = [0, 0]; // [px] that the pointer has gone to turn, and not to pull

  constructor(hands, event) {
    super(hands, event);
    this.began = event.timeStamp;
    hands.aimed("grab", event, { ahead: [...hands.view.camera.ahead] });
  }

  heldFor(event) {
    return event.timeStamp - this.began;
  }

  move(event, before) {
    const { pointers, view } = this.hands, { up, right, ahead } = view.camera;
    const [dx, dy] = [event.clientX - before.clientX, event.clientY - before.clientY];
    const other = [...pointers.values()].find(({ pointerId }) => pointerId !== event.pointerId);
    if (other) this.turn(ahead, between(other, before, event));
    if (event.pointerId !== this.latest.pointerId) return;
    if (event.altKey || event.buttons & 2) {
      this.turn(up, TURN * dx);
      this.turn(right, TURN * dy);
      this.aside = [this.aside[0] + dx, this.aside[1] + dy];
    } else super.move(event);
  }

  turn(axis, angle) {
    this.spin = along(this.spin, axis, angle);
  }

  frame() {
    const { latest: { clientX, clientY, timeStamp }, aside: [x, y] } = this, angle = length(this.spin);
    if (this.moved) this.hands.aimed("pull", { clientX: clientX - x, clientY: clientY - y, timeStamp });
    if (angle) this.hands.view.source.send("turn", { spin: scale(this.spin, Math.min(1, 3 / angle)) });
    this.moved = false;
    this.spin = [0, 0, 0];
  }

  end() {
    this.frame();
    this.hands.view.source.send("let_go", { pin: this.pin });
  }
}

class Push extends Following {
  name = "push";

  constructor(hands, event) {
    super(hands, event);
    hands.aimed("push", event);
  }

  frame() {
    if (this.moved) this.hands.aimed("push", this.latest);
    this.moved = false;
  }

  end() {
    this.hands.view.source.send("stop_push");
  }
}

class Stroke extends Following {
  name = "brush";
  moved = true;
  last = null;

  frame() {
    if (this.moved) this.last = this.hands.view.brush.touch(this.hands, this.latest, this.last);
    this.moved = false;
  }

  end(cancelled) {
    if (!cancelled) this.frame();
  }
}

class Cut {
  name = "cut";

  constructor(hands, event) {
    Object.assign(this, { hands, from: event });
  }

  move(event) {
    this.hands.stroke(this.from, event);
  }

  end(cancelled, event) {
    this.hands.stroke(null);
    if (cancelled || !event || apart(event, this.from) < CLICK) return;
    this.hands.aimed("cut", this.from, { to_way: this.hands.ray(event).way });
  }
}

/**
 * Several fingers: their middle turns the camera, and two zoom by their distance. Three pan; so do two where one turns
 * the camera already.
 */
class Fingers {
  constructor(hands) {
    this.hands = hands;
    const turning = hands.pointers.size === 2 && hands.view.live && !hands.orbiting;
    this.name = turning ? "orbit" : "pan";
  }

  move(event, before) {
    const { view, pointers } = this.hands, { camera, canvas } = view;
    const share = 1 / pointers.size / (this.name === "pan" ? canvas.clientHeight : 1);
    camera[this.name]((event.clientX - before.clientX) * share, (event.clientY - before.clientY) * share);
    const others = [...pointers.values()].filter(({ pointerId }) => pointerId !== event.pointerId);
    if (others.length !== 1) return;
    const [other] = others;
    const middle = { clientX: (event.clientX + other.clientX) / 2, clientY: (event.clientY + other.clientY) / 2 };
    camera.zoom(Math.max(apart(event, other), 1) / Math.max(apart(before, other), 1), this.hands.depthOf(middle));
  }

  end() {}
}

/** Angle about `pivot` from one place in the page to another [rad], clockwise, at most half a turn. */
function between(pivot, from, to) {
  const [one, other] = [from, to].map((at) => Math.atan2(at.clientY - pivot.clientY, at.clientX - pivot.clientX));
  return Math.atan2(Math.sin(other - one), Math.cos(other - one));
}

const apart = (a, b) => Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
