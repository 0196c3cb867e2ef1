/** Surfels, meshes and dots of one part on the GPU, straight from the records of a message. */

import { Records, bindTextures } from "phyxel/gl.js";
import { lookNamed, rowOf } from "phyxel/looks.js";

export class Solid {
  constructor(gl, kind) {
    this.gl = gl;
    this.kind = kind;
    this.records = new Records(gl, kind === "dots" ? 2 : 4);
    this.colors = new Records(gl, 1);
    this.faces = kind === "mesh" ? gl.createBuffer() : null;
    this.array = gl.createVertexArray(); // no attributes: shaders find records by number
    gl.bindVertexArray(this.array);
    if (this.faces) gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.faces);
    gl.bindVertexArray(null);
    this.keys = {};
  }

  show(part) {
    const { gl } = this;
    this.part = part;
    this.count = part.about.count;
    this.#put("records", (data) => this.records.fill(data));
    if (part.blobs.colors) this.#put("colors", (data) => this.colors.fill(data));
    if (!this.faces) return;
    this.corners = part.blobs.faces.byteLength >> 2;
    this.#put("faces", (data) => {
      gl.bindVertexArray(this.array);
      gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, data, gl.STATIC_DRAW);
      gl.bindVertexArray(null);
    });
  }

  /** Upload a blob, but not one with the key that is there already. */
  #put(name, upload) {
    const key = this.part.keys?.[name] ?? null;
    if (key !== null && key === this.keys[name]) return;
    this.keys[name] = key;
    upload(this.part.blobs[name]);
  }

  /** Where it is and what it looks like, for shaders; `sheets`: whether there are any that may lie on it. */
  place(placement, sheets) {
    const { about, blobs } = this.part;
    this.uniforms = {
      ...placement,
      under: about.collider && sheets ? 1 : 0,
      extent: about.upper.map((high, k) => high - about.lower[k]),
      finest: about.finest ?? 0,
      valued: about.valued ? 1 : 0,
      tinted: blobs.colors ? 1 : 0,
      sheet: about.sheet ? 1 : 0,
      opened: about.opened ? 1 : 0,
      grain: about.valued ? 0 : lookNamed(about.look).grain,
      row: rowOf(about.valued && about.look !== "painted" ? "matte" : about.look), // values must stay legible
    };
  }

  /** As they are seen: discs, triangles, or points. */
  draw() {
    if (this.kind !== "surfels") return this.drawVertices();
    this.#bind();
    this.gl.drawArrays(this.gl.TRIANGLES, 0, 3 * this.count);
  }

  /** Records as points, or as corners of triangles where there are faces. */
  drawVertices() {
    const { gl } = this;
    this.#bind();
    if (this.faces) gl.drawElements(gl.TRIANGLES, this.corners, gl.UNSIGNED_INT, 0);
    else gl.drawArrays(gl.POINTS, 0, this.count);
  }

  #bind() {
    bindTextures(this.gl, [this.records.texture, this.colors.texture ?? this.records.texture], 1);
    this.gl.bindVertexArray(this.array);
  }

  free() {
    this.gl.deleteVertexArray(this.array);
    if (this.faces) this.gl.deleteBuffer(this.faces);
    this.records.free();
    this.colors.free();
  }
}
