/**
 * The stage: draws a frame as a camera sees it.
 *
 * First the nearest of all discs, triangles and dots in every pixel; then all that belong to that surface are blended
 * by weight; then every pixel is lit once. Gaussian splats and marks go over the picture; its edges are smoothed last.
 */

import { Program, bindTextures, makeTarget, makeTexture } from "phyxel/gl.js";
import { ROOMS, STUDIO, STUFF } from "phyxel/looks.js";
import { Marks } from "phyxel/marks.js";
import {
  DISC_VERTEX, DOT_VERTEX, MESH_VERTEX, TEXTURES, WHOLE_VERTEX, blendFragment, seenFragment,
} from "phyxel/shaders.js";
import { ShadowMap } from "phyxel/shadow.js";
import { Solid } from "phyxel/solids.js";
import { SplatProgram, Splats } from "phyxel/splats.js";
import { BACKDROP_FRAGMENT, BODY_FRAGMENT, CROWDING_FRAGMENT, SHOWN_FRAGMENT, SMOOTH_FRAGMENT } from "phyxel/studio.js";
import { THRESHOLDS, Volume, VolumeProgram } from "phyxel/volumes.js";
import { boxOf, cornersOf, length, placed, subtract } from "phyxel/vectors.js";

const SLOW = 30, QUICK = 9; // milliseconds of a picture above which it gets coarser, below which finer
const COARSEST = 0.33, FINEST = 2; // pixels drawn over pixels shown, each way
const STILL = 400; // milliseconds without anything new after which a coarse picture is drawn with all pixels,
const PATIENCE = 1000; // if that takes no more than so many milliseconds

export class Stage {
  constructor(canvas) {
    this.canvas = canvas;
    const unused = { antialias: false, alpha: false, depth: false, stencil: false };
    this.gl = canvas.getContext("webgl2", { ...unused, powerPreference: "high-performance" });
    if (!this.gl) {
      throw new Error("This browser shows no WebGL2, which the picture is drawn with. Switch on hardware acceleration "
        + "in its settings, or open this address in a current Chrome, Edge, Firefox or Safari.");
    }
    this.frame = null;
    this.last = null;
    this.fineness = 1;
    this.room = ROOMS.studio;
    this.width = canvas.clientWidth || canvas.width;
    this.height = canvas.clientHeight || canvas.height;
    this.ratio = globalThis.devicePixelRatio || 1;
    canvas.addEventListener("webglcontextlost", (event) => {
      event.preventDefault();
      this.lost?.();
    });
    canvas.addEventListener("webglcontextrestored", () => this.#restore());
    this.#begin();
  }

  #begin() {
    const { gl } = this;
    this.blended = Boolean(gl.getExtension("EXT_color_buffer_float") ?? gl.getExtension("EXT_color_buffer_half_float"));
    const defines = this.blended ? "#define BLENDED" : "";
    const both = (vertex, kind) => ({
      seen: new Program(gl, vertex, seenFragment(kind)),
      blend: new Program(gl, vertex, blendFragment(kind), defines),
    });
    this.programs = {
      surfels: both(DISC_VERTEX, "DISC"), mesh: both(MESH_VERTEX, "MESH"), dots: both(DOT_VERTEX, "DOT"),
    };
    this.backdrop = new Program(gl, WHOLE_VERTEX, BACKDROP_FRAGMENT);
    this.shadowed = new Program(gl, WHOLE_VERTEX, BACKDROP_FRAGMENT, "#define SHADOWED");
    this.crowding = new Program(gl, WHOLE_VERTEX, CROWDING_FRAGMENT, defines);
    this.bodies = new Program(gl, WHOLE_VERTEX, BODY_FRAGMENT, defines);
    this.smooth = new Program(gl, WHOLE_VERTEX, SMOOTH_FRAGMENT);
    this.shown = new Program(gl, WHOLE_VERTEX, SHOWN_FRAGMENT);
    this.splatting = new SplatProgram(gl);
    this.seeing = new VolumeProgram(gl);
    this.marks = new Marks(gl);
    this.shadows = new ShadowMap(gl);
    this.legend = makeTexture(gl, 64, 1, gl.RGBA8, { linear: true });
    this.legendKey = null;
    this.solids = new Map();
    this.splats = new Map();
    this.volumes = new Map();
    this.targets = null;
  }

  #restore() {
    this.#begin();
    if (this.frame) this.show(this.frame);
    if (this.last) this.draw(this.last.camera, this.last.marks);
  }

  /** "studio" is light, "dark" is not. */
  theme(dark) {
    this.room = dark ? ROOMS.dark : ROOMS.studio;
  }

  /** Size of the canvas in CSS pixels, and device pixels for each. */
  resize(width, height, ratio = globalThis.devicePixelRatio || 1) {
    Object.assign(this, { width, height, ratio });
  }

  /** Take a frame (see decode.js): all of it goes to the GPU at once, the message is not needed for drawing. */
  show(frame) {
    this.frame = frame;
    clearTimeout(this.timer);
    if (this.gl.isContextLost()) return;
    this.#showLegend(frame.about.legend);
    const kept = new Set();
    for (const part of frame.parts) {
      const id = `${part.kind} ${part.name}`, [parts, make] = {
        splats: [this.splats, () => new Splats(this.gl)], volume: [this.volumes, () => new Volume(this.gl)],
      }[part.kind] ?? [this.solids, () => new Solid(this.gl, part.kind)];
      if (!part.about.count) continue;
      kept.add(id);
      if (!parts.has(id)) parts.set(id, make());
      parts.get(id).show(part);
    }
    for (const parts of [this.solids, this.splats, this.volumes]) {
      for (const [id, one] of parts) {
        if (kept.has(id)) continue;
        one.free();
        parts.delete(id);
      }
    }
    this.box = boxOf(frame.parts);
    this.shaded = false;
  }

  #showLegend(legend) {
    const key = legend ? legend.colors.join() : null;
    if (!legend || key === this.legendKey) return;
    this.legendKey = key;
    const { gl } = this, bytes = new Uint8Array(256);
    legend.colors.forEach(([r, g, b], k) => bytes.set([r, g, b, 255], 4 * k));
    gl.bindTexture(gl.TEXTURE_2D, this.legend);
    gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, 64, 1, gl.RGBA, gl.UNSIGNED_BYTE, bytes);
  }

  /** Draw the frame as `camera` sees it. True if the camera still glides: draw again soon. */
  draw(camera, marks = {}) {
    const now = performance.now(), gliding = camera.settle?.((now - (this.drawn ?? now)) / 1000) ?? false;
    this.drawn = now;
    this.last = { camera, marks };
    clearTimeout(this.timer);
    if (this.gl.isContextLost()) return gliding;
    this.#draw(camera, marks);
    this.#watch();
    if (this.fineness < 1) this.timer = setTimeout(() => this.#redraw(), STILL);
    return gliding;
  }

  /** Whether the last picture is finished: who draws sooner lets pictures queue up. */
  get ready() {
    return !this.fence;
  }

  /** All pixels, once: nothing moves. */
  #redraw() {
    const { fineness } = this;
    if (this.gl.isContextLost() || this.cost > PATIENCE) return;
    if (!this.ready) {
      this.timer = setTimeout(() => this.#redraw(), STILL);
      return;
    }
    this.fineness = 1;
    this.#draw(this.last.camera, this.last.marks);
    this.fineness = fineness;
  }

  /** A picture with every pixel of the display: a PNG. */
  photograph(camera, marks) {
    const { fineness } = this;
    this.fineness = Math.max(fineness, 1);
    this.#draw(camera, marks);
    this.fineness = fineness;
    return new Promise((resolve) => this.canvas.toBlob(resolve, "image/png"));
  }

  #draw(camera, marks) {
    const { gl } = this;
    this.#makeTargets();
    const common = this.#common(camera);
    const solids = [...this.solids.values()], splats = [...this.splats.values()];
    // What lies on a collider as thin as cloth must not be seen through its discs, which are flat.
    const sheets = solids.some((one) => one.part.about.sheet);
    for (const one of solids) one.place(placement(one.part.about, camera.target), sheets);
    for (const one of splats) one.sort(camera.ahead, placement(one.part.about, camera.target));
    this.#drawShadows(solids, splats, camera.target, common);
    gl.viewport(0, 0, ...common.pixels);
    this.#drawNearest(solids, common);
    this.#blend(solids, common);
    this.#crowd(common, camera);
    this.#light(common, camera);
    this.#seeThrough(common, camera, marks.volume ?? THRESHOLDS);
    this.#drawOver(splats, marks, common, camera.target);
    this.#finish();
  }

  /** The canvas has the pixels of the display; what is drawn has more or fewer. */
  #makeTargets() {
    const { gl, canvas } = this, sides = [this.width, this.height];
    const sized = (scale) => sides.map((side) => Math.max(1, Math.round(side * scale)));
    const [wide, high] = sized(this.ratio), [width, height] = sized(this.ratio * this.fineness);
    if (canvas.width !== wide || canvas.height !== high) Object.assign(canvas, { width: wide, height: high });
    if (this.targets?.width === width && this.targets.height === height) return;
    this.#dropTargets();
    const texture = (format, more) => makeTexture(gl, width, height, format, more);
    const depth = texture(gl.DEPTH_COMPONENT24), marks = texture(gl.R8);
    const [colors, normals] = [0, 1].map(() => texture(this.blended ? gl.RGBA16F : gl.RGBA8));
    const picture = texture(gl.RGBA8, { linear: true });
    // What reads the depth cannot be tested against it: a copy.
    const tested = texture(gl.DEPTH_COMPONENT24);
    const crowding = makeTexture(gl, (width + 1) >> 1, (height + 1) >> 1, gl.RGBA8);
    this.targets = {
      width, height, depth, marks, colors, normals, picture, crowding,
      seen: makeTarget(gl, [marks], depth), blend: makeTarget(gl, [colors, normals]),
      crowd: makeTarget(gl, [crowding]), over: makeTarget(gl, [picture], tested),
      textures: [depth, marks, colors, normals, picture, crowding, tested],
    };
  }

  #dropTargets() {
    const { gl, targets } = this;
    if (!targets) return;
    for (const texture of targets.textures) gl.deleteTexture(texture);
    for (const target of [targets.seen, targets.blend, targets.crowd, targets.over]) gl.deleteFramebuffer(target);
  }

  /** What most programs want to know about the picture. */
  #common(camera) {
    const { width, height } = this.targets, box = this.box, about = this.frame?.about ?? {};
    const across = box ? length(subtract(box.high, box.low)) : 1;
    const middle = box ? [0, 1, 2].map((k) => 0.5 * (box.low[k] + box.high[k])) : camera.target;
    const away = length(subtract(camera.eye, middle)), size = about.size || across;
    const near = Math.max(away - 0.6 * across, 0.003 * Math.min(size, 4 * camera.distance));
    const far = away + 0.6 * across + near;
    const sight = camera.matrices(width / height, near, far);
    const grounded = Number.isFinite(about.ground ?? NaN);
    const level = grounded ? about.ground : (box?.low[1] ?? 0);
    return {
      ...sight, pixels: [width, height], ratio: this.ratio * this.fineness, reach: [near, far], size,
      focal: (0.5 * height) / sight.tall, eye: subtract(camera.eye, camera.target),
      grounded: grounded ? 1 : 0, level: level - camera.target[1], ground: level,
    };
  }

  /** The map stays while only the camera moves; but it counts from the camera's target. */
  #drawShadows(solids, splats, base, { size, ground }) {
    const key = base.join();
    if (!this.box || (this.shaded === key)) return;
    this.shadows.draw(solids, splats, this.box, base, ground, size, this.legend);
    this.shaded = key;
  }

  #drawNearest(solids, common) {
    const { gl } = this;
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.targets.seen);
    gl.clearColor(0, 0, 0, 0);
    gl.enable(gl.DEPTH_TEST);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    bindTextures(gl, [this.legend]);
    this.#drawAll(solids, "seen", common);
    gl.disable(gl.DEPTH_TEST);
  }

  #blend(solids, common) {
    const { gl, targets } = this;
    gl.bindFramebuffer(gl.FRAMEBUFFER, targets.blend);
    gl.clear(gl.COLOR_BUFFER_BIT);
    bindTextures(gl, [this.legend]);
    bindTextures(gl, [targets.depth], TEXTURES.front);
    if (this.blended) {
      gl.enable(gl.BLEND);
      gl.blendFunc(gl.ONE, gl.ONE);
    }
    this.#drawAll(solids, "blend", common);
    gl.disable(gl.BLEND);
  }

  #drawAll(solids, pass, common) {
    for (const solid of solids) {
      this.programs[solid.kind][pass].use(common, TEXTURES, solid.uniforms);
      solid.draw();
    }
  }

  #crowd(common, camera) {
    const { gl, targets } = this, [width, height] = [(targets.width + 1) >> 1, (targets.height + 1) >> 1];
    if (!this.box) return;
    gl.bindFramebuffer(gl.FRAMEBUFFER, targets.crowd);
    gl.viewport(0, 0, width, height);
    gl.enable(gl.SCISSOR_TEST);
    gl.scissor(...camera.bounds(cornersOf(this.box), width, height));
    bindTextures(gl, [targets.normals, targets.depth]);
    this.crowding.use(common, { normals: 0, front: 1 });
    this.#fill();
    gl.disable(gl.SCISSOR_TEST);
    gl.viewport(0, 0, targets.width, targets.height);
  }

  #light(common, camera) {
    const { gl, targets, shadows } = this, { width, height } = targets;
    gl.bindFramebuffer(gl.READ_FRAMEBUFFER, targets.seen);
    gl.bindFramebuffer(gl.DRAW_FRAMEBUFFER, targets.over);
    gl.blitFramebuffer(0, 0, width, height, 0, 0, width, height, gl.DEPTH_BUFFER_BIT, gl.NEAREST);
    gl.bindFramebuffer(gl.FRAMEBUFFER, targets.over);
    bindTextures(gl, [targets.colors, targets.normals, targets.marks, targets.depth,
      shadows.shade, shadows.raised, shadows.contact, shadows.tops, targets.crowding]);
    const textures = { colors: 0, normals: 1, marks: 2, front: 3, mapShade: 4, mapRaised: 5, mapContact: 6, mapDepth: 7,
      crowding: 8 };
    this.backdrop.use(common, this.room);
    this.#fill();
    if (!this.box) return;
    gl.enable(gl.SCISSOR_TEST);
    if (common.grounded) {
      gl.scissor(...camera.bounds(shadows.corners, width, height));
      this.shadowed.use(common, this.room, shadows.uniforms, textures);
      this.#fill();
    }
    gl.scissor(...camera.bounds(cornersOf(this.box), width, height));
    gl.enable(gl.DEPTH_TEST);
    gl.depthFunc(gl.GREATER); // only where something is before the farthest depth
    gl.depthMask(false);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.bodies.use(common, shadows.uniforms, STUDIO, textures, { stuff: STUFF });
    this.#fill();
    gl.disable(gl.BLEND);
    gl.disable(gl.SCISSOR_TEST);
    gl.depthMask(true);
    gl.depthFunc(gl.LESS);
    gl.disable(gl.DEPTH_TEST);
  }

  #seeThrough(common, camera, thresholds) {
    bindTextures(this.gl, [this.legend, this.targets.depth]);
    this.seeing.draw([...this.volumes.values()], camera, common, thresholds, { colors: 0, front: 1 });
  }

  #drawOver(splats, marks, common, base) {
    const { gl, targets } = this;
    gl.bindFramebuffer(gl.FRAMEBUFFER, targets.over);
    gl.enable(gl.DEPTH_TEST);
    gl.depthMask(false);
    this.splatting.draw(gl, splats, common);
    this.marks.draw(marks, this.frame?.about.plane, this.box, common, base);
    gl.depthMask(true);
    gl.disable(gl.DEPTH_TEST);
  }

  /** To the canvas; a coarse picture gets soft enough by being stretched. */
  #finish() {
    const { gl, canvas } = this;
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    gl.viewport(0, 0, canvas.width, canvas.height);
    bindTextures(gl, [this.targets.picture]);
    (this.fineness < 0.9 ? this.shown : this.smooth).use({ picture: 0, canvas: [canvas.width, canvas.height] });
    this.#fill();
  }

  /** One triangle that covers the picture. */
  #fill() {
    this.gl.bindVertexArray(null);
    this.gl.drawArrays(this.gl.TRIANGLES, 0, 3);
  }

  /** See how long the GPU takes for this picture; the next ones are coarser if that is long. */
  #watch() {
    if (this.fence) return;
    const { gl } = this, begun = performance.now();
    this.fence = gl.fenceSync(gl.SYNC_GPU_COMMANDS_COMPLETE, 0);
    gl.flush();
    const look = () => {
      if (gl.isContextLost() || gl.getSyncParameter(this.fence, gl.SYNC_STATUS) === gl.SIGNALED) {
        gl.deleteSync(this.fence);
        this.fence = null;
        this.#adapt(performance.now() - begun);
      } else setTimeout(look, 2);
    };
    setTimeout(look, 1);
  }

  /** A picture costs about as much as it has pixels: `cost` is that of one with all pixels of the display. */
  #adapt(milliseconds) {
    const cost = milliseconds / this.fineness ** 2;
    this.cost = 0.7 * (this.cost ?? cost) + 0.3 * cost;
    const mean = this.cost * this.fineness ** 2, finest = Math.max(1, FINEST / this.ratio);
    if (mean < SLOW && (mean > QUICK || this.fineness === finest)) return;
    this.fineness = Math.max(COARSEST, Math.min(finest, Math.sqrt((0.5 * (SLOW + QUICK)) / this.cost)));
  }
}

/** Of a part: its corner and its origin about `base` [m], and how it is turned. */
function placement({ pose, lower }, base) {
  const turn = pose ? [0, 1, 2, 4, 5, 6, 8, 9, 10].map((k) => pose[k]) : [1, 0, 0, 0, 1, 0, 0, 0, 1];
  const [corner, origin] = [lower, [0, 0, 0]].map((p) => subtract(pose ? placed(pose, p) : p, base));
  return { corner, origin, turn };
}
