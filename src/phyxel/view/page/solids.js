/** Surfels, meshes and dots of one part on the GPU, straight from the records of a message. */

import { Stream } from "phyxel/gl.js";
import { rowOf, lookNamed } from "phyxel/looks.js";

const PLAIN = [0.6, 0.61, 0.63, 1]; // what has no colors

export class Solid {
  constructor(gl, kind) {
    this.gl = gl;
    this.kind = kind;
    this.records = new Stream(gl);
    this.colors = new Stream(gl);
    this.faces = kind === "mesh" ? new Stream(gl, gl.ELEMENT_ARRAY_BUFFER) : null;
    this.keys = {};
    this.discs = kind === "surfels" ? this.#array(1) : null;
    this.plain = this.#array(0);
  }

  /** How attributes lie in the records: one after another for vertices, or one for each instance. */
  #array(divisor) {
    const { gl } = this, array = gl.createVertexArray();
    gl.bindVertexArray(array);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.records.buffer);
    const stride = this.kind === "dots" ? 8 : 16;
    gl.vertexAttribPointer(0, 4, gl.UNSIGNED_SHORT, true, stride, 0);
    if (stride === 16) {
      gl.vertexAttribPointer(1, 2, gl.SHORT, true, stride, 8);
      gl.vertexAttribPointer(2, 4, gl.UNSIGNED_BYTE, false, stride, 12);
    }
    for (const place of stride === 16 ? [0, 1, 2] : [0]) {
      gl.enableVertexAttribArray(place);
      gl.vertexAttribDivisor(place, divisor);
    }
    gl.bindBuffer(gl.ARRAY_BUFFER, this.colors.buffer);
    gl.vertexAttribPointer(3, 4, gl.UNSIGNED_BYTE, true, 4, 0);
    gl.vertexAttribDivisor(3, divisor);
    if (this.faces) gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.faces.buffer);
    gl.bindVertexArray(null);
    return array;
  }

  show(part) {
    const { gl } = this;
    this.part = part;
    this.count = part.about.count;
    gl.bindVertexArray(null);
    this.#put("records", this.records);
    const colored = Boolean(part.blobs.colors);
    if (colored) this.#put("colors", this.colors);
    if (colored !== this.colored) this.#paint(colored);
    if (this.faces) {
      this.#put("faces", this.faces);
      this.corners = part.blobs.faces.byteLength >> 2;
    }
  }

  /** Upload a blob, but not one with the key that is there already. */
  #put(name, stream) {
    const key = this.part.keys?.[name] ?? null;
    if (key !== null && key === this.keys[name]) return;
    this.keys[name] = key;
    stream.fill(this.part.blobs[name]);
  }

  #paint(colored) {
    const { gl } = this;
    this.colored = colored;
    for (const array of [this.discs, this.plain]) {
      if (!array) continue;
      gl.bindVertexArray(array);
      if (colored) gl.enableVertexAttribArray(3);
      else gl.disableVertexAttribArray(3);
    }
    gl.bindVertexArray(null);
  }

  /** Where it is, about `base`, and what it looks like; for shaders. */
  place(base, placement) {
    const { about } = this.part;
    const valued = Boolean(about.valued);
    this.uniforms = {
      ...placement(about, base),
      extent: about.upper.map((high, k) => high - about.lower[k]),
      finest: about.finest ?? about.radius ?? 0,
      valued: valued ? 1 : 0,
      sheet: about.sheet ? 1 : 0,
      grain: valued ? 0 : lookNamed(about.look).grain,
      row: rowOf(about.look),
    };
  }

  drawDiscs() {
    this.#bind(this.discs);
    this.gl.drawArraysInstanced(this.gl.TRIANGLE_STRIP, 0, 4, this.count);
  }

  /** Vertices as points, or as triangles where there are faces. */
  drawPlain() {
    const { gl } = this;
    this.#bind(this.plain);
    if (this.faces) gl.drawElements(gl.TRIANGLES, this.corners, gl.UNSIGNED_INT, 0);
    else gl.drawArrays(gl.POINTS, 0, this.count);
  }

  #bind(array) {
    this.gl.bindVertexArray(array);
    if (!this.colored) this.gl.vertexAttrib4fv(3, PLAIN);
  }

  free() {
    const { gl } = this;
    for (const array of [this.discs, this.plain]) if (array) gl.deleteVertexArray(array);
    for (const stream of [this.records, this.colors, this.faces]) stream?.free();
  }
}
