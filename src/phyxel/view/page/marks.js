/** What hands leave in the picture: pins, the line of a grab, a ring under the pointer, the plane of a slice. */

import { Program } from "phyxel/gl.js";
import { add, along, dot, scale, subtract, tangents, unit } from "phyxel/vectors.js";

const NUMBERS = 16; // of a mark: from, to, color, width [pixels], kind, two to spare
const LINE = 0, BALL = 1, RING = 2;
const PIN = [0.13, 0.43, 0.93, 1], GRAB = [1, 0.55, 0.1, 1], HOVER = [1, 1, 1, 0.95], SLICE = [0.2, 0.5, 0.95, 1];

/** Each mark is a strip of four corners; its kind says how they lie. */
const VERTEX = `
layout(location = 0) in vec3 from;
layout(location = 1) in vec3 to;
layout(location = 2) in vec4 tint;
layout(location = 3) in vec2 style;  // width [pixels], kind
uniform mat4 view, projection;
uniform vec2 pixels;
uniform float ratio, nearest;
out vec2 inside;
flat out vec4 color;
flat out vec2 kind;  // kind, half width [pixels]

void main() {
  vec2 sign = vec2(gl_VertexID & 1, gl_VertexID >> 1) * 2.0 - 1.0;
  float wide = 0.5 * style.x * ratio + 1.0;
  inside = sign;
  color = tint;
  kind = vec2(style.y, wide);
  vec4 a = projection * view * vec4(from, 1.0), b = projection * view * vec4(to, 1.0);
  if (style.y < 0.5) {  // a line
    if (a.w < nearest) a = mix(a, b, (nearest - a.w) / (b.w - a.w));
    if (b.w < nearest) b = mix(b, a, (nearest - b.w) / (a.w - b.w));
    vec2 way = (b.xy / b.w - a.xy / a.w) * pixels;
    way = dot(way, way) > 0.0 ? normalize(way) : vec2(1, 0);
    gl_Position = sign.x < 0.0 ? a : b;
    gl_Position.xy += sign.y * wide * vec2(-way.y, way.x) * 2.0 / pixels * gl_Position.w;
  } else {
    gl_Position = a;
    gl_Position.xy += sign * wide * 2.0 / pixels * a.w;
  }
}
`;

const FRAGMENT = `
in vec2 inside;
flat in vec4 color;
flat in vec2 kind;
uniform float dim;
layout(location = 0) out vec4 result;

void main() {
  float halfWidth = kind.y, edge;
  vec3 shade = color.rgb;
  if (kind.x < 0.5) {
    edge = halfWidth - abs(inside.y) * halfWidth;
  } else {
    float r = length(inside) * halfWidth;
    edge = halfWidth - r;
    if (kind.x < 1.5) {  // a ball with a white rim
      vec3 n = vec3(inside, sqrt(max(1.0 - dot(inside, inside), 0.0)));
      shade *= 0.65 + 0.45 * max(dot(n, normalize(vec3(-0.5, 0.7, 0.6))), 0.0);
      shade += 0.5 * pow(max(dot(n, normalize(vec3(-0.35, 0.55, 0.75))), 0.0), 24.0);
      shade = mix(shade, vec3(1), smoothstep(0.68, 0.78, length(inside)));
    } else {  // a ring, light within dark
      float off = abs(r - 0.72 * halfWidth);
      edge = 0.2 * halfWidth + 0.5 - off;
      shade = mix(shade, vec3(0.12), smoothstep(0.08 * halfWidth, 0.16 * halfWidth, off));
    }
  }
  float alpha = color.a * dim * clamp(edge, 0.0, 1.0);
  result = vec4(shade * alpha, alpha);
}
`;

const PLANE_VERTEX = `
uniform vec3 middle, across, upward;
uniform mat4 view, projection;
out vec2 inside;
void main() {
  inside = vec2(gl_VertexID & 1, gl_VertexID >> 1) * 2.0 - 1.0;
  gl_Position = projection * view * vec4(middle + inside.x * across + inside.y * upward, 1.0);
}
`;

const PLANE_FRAGMENT = `
in vec2 inside;
uniform vec4 tint;
layout(location = 0) out vec4 result;
void main() {
  vec2 edge = (1.0 - abs(inside)) / fwidth(inside);
  float border = 1.0 - clamp(min(edge.x, edge.y) - 1.0, 0.0, 1.0);
  float alpha = mix(0.13, 0.8, border) * tint.a;
  result = vec4(tint.rgb * alpha, alpha);
}
`;

export class Marks {
  constructor(gl) {
    this.gl = gl;
    this.program = new Program(gl, VERTEX, FRAGMENT);
    this.plane = new Program(gl, PLANE_VERTEX, PLANE_FRAGMENT);
    this.buffer = gl.createBuffer();
    this.numbers = new Float32Array(64 * NUMBERS);
    this.array = gl.createVertexArray();
    gl.bindVertexArray(this.array);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffer);
    [[3, 0], [3, 3], [4, 6], [2, 10]].forEach(([count, first], place) => {
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, count, gl.FLOAT, false, 4 * NUMBERS, 4 * first);
      gl.vertexAttribDivisor(place, 1);
    });
    gl.bindVertexArray(null);
  }

  /** Draw marks over the picture; what things hide is seen dimly, but for the plane, which they hide. */
  draw(marks, cut, box, common, base) {
    const { gl } = this;
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.depthMask(false);
    if (marks.plane && box) this.#drawPlane(cut ?? squareIn(box, marks.plane), common, base);
    const count = this.#gather(marks, base);
    if (count) {
      gl.bindVertexArray(this.array);
      gl.bindBuffer(gl.ARRAY_BUFFER, this.buffer);
      gl.bufferData(gl.ARRAY_BUFFER, this.numbers.subarray(0, count * NUMBERS), gl.STREAM_DRAW);
      this.program.use(common, { nearest: common.reach[0] });
      for (const [hidden, dim] of [[true, 0.55], [false, 1]]) {
        if (hidden) gl.disable(gl.DEPTH_TEST);
        else gl.enable(gl.DEPTH_TEST);
        this.program.set({ dim });
        gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, count);
      }
    }
    gl.depthMask(true);
    gl.disable(gl.DEPTH_TEST);
    gl.disable(gl.BLEND);
  }

  #gather({ pins = [], grabs = [], hover = null }, base) {
    const few = pins.length + 3 * grabs.length + (hover ? 1 : 0);
    if (few * NUMBERS > this.numbers.length) this.numbers = new Float32Array(2 * few * NUMBERS);
    let count = 0;
    const put = (from, to, color, width, kind) => {
      const at = NUMBERS * count++;
      for (let k = 0; k < 3; k++) {
        this.numbers[at + k] = from[k] - base[k];
        this.numbers[at + 3 + k] = to[k] - base[k];
      }
      this.numbers.set(color, at + 6);
      this.numbers[at + 10] = width;
      this.numbers[at + 11] = kind;
    };
    if (hover) put(hover.at ?? hover, hover.at ?? hover, HOVER, 18, RING);
    for (const { at, to } of grabs) {
      put(at, to, GRAB, 2.5, LINE);
      put(at, at, GRAB, 9, BALL);
      put(to, to, GRAB, 14, BALL);
    }
    for (const pin of pins) put(pin, pin, PIN, 14, BALL);
    return count;
  }

  #drawPlane({ centre, axes }, common, base) {
    const { gl } = this;
    this.plane.use(common, { middle: subtract(centre, base), across: axes[0], upward: axes[1], tint: SLICE });
    gl.enable(gl.DEPTH_TEST);
    gl.bindVertexArray(null);
    gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
  }
}

/** The part of a plane that is about as wide as a box: its centre, and half sides [m]. */
function squareIn(box, { normal, place }) {
  const n = unit(normal), middle = scale(add(box.low, box.high), 0.5), half = scale(subtract(box.high, box.low), 0.5);
  const reach = (axis) => scale(axis, 1.15 * half.reduce((sum, h, k) => sum + h * Math.abs(axis[k]), 0));
  return { centre: along(middle, n, dot(n, subtract(place, middle))), axes: tangents(n).map(reach) };
}
