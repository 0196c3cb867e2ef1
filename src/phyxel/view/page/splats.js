/** Gaussian splats: records of 28 bytes in a texture, drawn from back to front. */

import { Program, Records, bindTextures } from "phyxel/gl.js";
import { TEXTURES } from "phyxel/shaders.js";

const PER_ROW = 256; // records in a row of the texture, seven words each
const WORDS = 7;

export const SPLAT_RECORDS = `
uniform highp usampler2D records;
uniform vec3 corner;  // about the base [m]
uniform float unit;
uniform mat3 turn;

uint word(int record, int k) {
  return texelFetch(records, ivec2((record % ${PER_ROW}) * ${WORDS} + k, record / ${PER_ROW}), 0).r;
}

vec3 middleOf(int k) {
  return corner + turn * vec3(uintBitsToFloat(word(k, 0)), uintBitsToFloat(word(k, 1)), uintBitsToFloat(word(k, 2)));
}

mat3 covarianceOf(int k) {
  vec2 a = unpackHalf2x16(word(k, 3)), b = unpackHalf2x16(word(k, 4)), c = unpackHalf2x16(word(k, 5));
  mat3 here = mat3(a.x, a.y, b.x, a.y, b.y, c.x, b.x, c.x, c.y) * (unit * unit);
  return turn * here * transpose(turn);
}

vec4 colorOf(int k) {
  uint c = word(k, 6);
  return vec4(c & 255u, (c >> 8) & 255u, (c >> 16) & 255u, c >> 24) / 255.0;
}
`;

/** Zwicker's projection of a Gaussian: to first order about its middle, and a little wider than a pixel. */
const VERTEX = `${SPLAT_RECORDS}
uniform highp usampler2D order;
uniform mat4 view, projection;
uniform vec2 pixels;
uniform vec3 eye;
uniform float focal, level, grounded;
out vec2 sigmas;
flat out vec4 color;

// Corners of a triangle about the unit circle.
const vec2 CORNERS[3] = vec2[](vec2(0, 2), vec2(-1.7320508, -1), vec2(1.7320508, -1));

void main() {
  int turnOf = gl_VertexID / 3;
  int k = int(texelFetch(order, ivec2(turnOf & 1023, turnOf >> 10), 0).r);
  vec3 at = middleOf(k);
  vec3 p = (view * vec4(at, 1.0)).xyz;
  color = colorOf(k);
  gl_Position = vec4(2.0, 2.0, 2.0, 1.0);
  if (!(p.z < 0.0) || (grounded > 0.5 && eye.y > level && at.y < level)) return;
  float perDepth = -focal / p.z;
  vec2 aside = clamp(p.xy / -p.z, -pixels / focal, pixels / focal);  // beside the picture first order would run off
  mat3 seen = mat3(view) * covarianceOf(k) * transpose(mat3(view));
  mat3x2 flatten = mat3x2(perDepth, 0.0, 0.0, perDepth, aside * perDepth);
  mat2 spread = flatten * seen * transpose(flatten);
  float xx = spread[0][0] + 0.3, xy = spread[0][1], yy = spread[1][1] + 0.3;
  float middle = 0.5 * (xx + yy), apart = sqrt(0.25 * (xx - yy) * (xx - yy) + xy * xy);
  vec2 major = xx >= yy ? vec2(1, 0) : vec2(0, 1);
  if (abs(xy) > 1e-6) major = normalize(vec2(xy, middle + apart - xx));
  vec2 sign = CORNERS[gl_VertexID % 3];
  sigmas = sign * sqrt(2.0 * log(255.0 * max(color.a, 1.0 / 255.0)) + 1e-3);  // where less than 1/255 is left
  vec2 reach = sigmas.x * sqrt(middle + apart) * major
    + sigmas.y * sqrt(max(middle - apart, 0.1)) * vec2(-major.y, major.x);
  gl_Position = projection * vec4(p, 1.0);
  gl_Position.xy += reach * 2.0 / pixels * gl_Position.w;
}
`;

const FRAGMENT = `
in vec2 sigmas;
flat in vec4 color;
layout(location = 0) out vec4 result;
void main() {
  float alpha = color.a * exp(-0.5 * dot(sigmas, sigmas));
  if (alpha < 1.0 / 255.0) discard;
  result = vec4(color.rgb, 1.0) * alpha;
}
`;

export class SplatProgram {
  constructor(gl) {
    this.program = new Program(gl, VERTEX, FRAGMENT);
  }

  draw(gl, splats, common) {
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    for (const one of splats) {
      bindTextures(gl, [one.records.texture, one.order.texture]);
      this.program.use(common, one.uniforms, { records: 0, order: 1 });
      gl.bindVertexArray(null);
      gl.drawArrays(gl.TRIANGLES, 0, 3 * one.count);
    }
    gl.disable(gl.BLEND);
  }
}

/** The splats of one part on the GPU. */
export class Splats {
  constructor(gl) {
    this.gl = gl;
    this.records = new Records(gl, 1, WORDS, PER_ROW);
    this.order = new Records(gl, 1);
    this.sorter = new Sorter();
  }

  show(part) {
    this.part = part;
    const { records } = part.blobs;
    this.count = part.about.count;
    this.places = new Float32Array(records.buffer, records.byteOffset, this.count * WORDS);
    this.records.fill(this.places);
    this.sorted = false;
  }

  /** Order them along a direction, from back to front; `uniforms` say where the part is. */
  sort(ahead, uniforms) {
    this.uniforms = { ...uniforms, unit: this.part.about.unit };
    const t = uniforms.turn; // into the part's own frame
    const way = [0, 3, 6].map((k) => t[k] * ahead[0] + t[k + 1] * ahead[1] + t[k + 2] * ahead[2]);
    if (this.sorted && way[0] * this.way[0] + way[1] * this.way[1] + way[2] * this.way[2] > 0.9999) return;
    this.order.fill(this.sorter.order(this.places, this.count, way));
    this.sorted = true;
    this.way = way;
  }

  drawPoints() {
    const { gl } = this;
    bindTextures(gl, [this.records.texture], TEXTURES.records);
    gl.bindVertexArray(null);
    gl.drawArrays(gl.POINTS, 0, this.count);
  }

  free() {
    this.records.free();
    this.order.free();
  }
}

const KEYS = 65536;

/** Counting sort by 16 bits of depth: some milliseconds for a hundred thousand, with no memory taken anew. */
export class Sorter {
  constructor() {
    this.starts = new Uint32Array(KEYS + 1);
    this.room = 0;
  }

  /** Numbers of the records, the farthest along `way` first. `places` has x, y, z and four more for each. */
  order(places, count, [x, y, z]) {
    if (count > this.room) {
      this.room = Math.ceil(1.25 * count);
      this.depths = new Float32Array(this.room);
      this.keys = new Uint16Array(this.room);
      this.numbers = new Uint32Array(this.room);
    }
    const { depths, keys, numbers, starts } = this;
    let least = Infinity, most = -Infinity;
    for (let k = 0, at = 0; k < count; k++, at += WORDS) {
      const depth = x * places[at] + y * places[at + 1] + z * places[at + 2];
      depths[k] = depth;
      if (depth < least) least = depth;
      if (depth > most) most = depth;
    }
    const scale = most > least ? (KEYS - 1) / (most - least) : 0;
    starts.fill(0);
    for (let k = 0; k < count; k++) {
      keys[k] = (most - depths[k]) * scale;
      starts[keys[k] + 1]++;
    }
    for (let key = 0; key < KEYS; key++) starts[key + 1] += starts[key];
    for (let k = 0; k < count; k++) numbers[starts[keys[k]]++] = k;
    return numbers.subarray(0, count);
  }
}
