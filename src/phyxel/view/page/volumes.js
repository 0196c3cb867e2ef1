/** Fields all through bodies: rays are marched through a small grid of values, as fog or up to an iso-surface. */
import { Program } from "phyxel/gl.js";
import { WHOLE_VERTEX } from "phyxel/shaders.js";
import { cornersOf, subtract } from "phyxel/vectors.js";

const UNIT = 12; // texture unit of the grid, beyond those that others use
export const THRESHOLDS = { at: 0.5, low: 0.3, high: 1 }; // shares of the scale: of the surface, and of what fog shows

const FRAGMENT = `
uniform highp sampler3D grid;
uniform highp sampler2D colors, front;
uniform vec2 pixels, reach;
uniform vec3 low, high, eye, right, up, ahead, limits;  // limits: of the surface, of fog from and to
uniform float tall, iso;
layout(location = 0) out vec4 result;
const int STEPS = 96;

vec2 seen(vec3 p) { return texture(grid, (p - low) / (high - low)).rg; }
vec3 tint(float value) { return texture(colors, vec2((value * 63.0 + 0.5) / 64.0, 0.5)).rgb; }
/** Above 0 where the body has more than the threshold. */
float above(vec3 p) {
  vec2 v = seen(p);
  return min(v.r - limits.x, v.g - 0.5);
}

void main() {
  vec2 at = (2.0 * gl_FragCoord.xy - pixels) / pixels.y * tall;
  vec3 way = ahead + at.x * right + at.y * up;  // of depth 1
  float depth = 2.0 * texture(front, gl_FragCoord.xy / pixels).r - 1.0;
  float most = 2.0 * reach.x * reach.y / (reach.y + reach.x - depth * (reach.y - reach.x));
  vec3 one = (low - eye) / way, other = (high - eye) / way;
  vec3 first = min(one, other), last = max(one, other);
  float begin = max(max(first.x, first.y), max(first.z, reach.x)), end = min(min(last.x, last.y), min(last.z, most));
  if (begin >= end) discard;
  float size = length(high - low), stride = (end - begin) / float(STEPS);
  float thick = stride * length(way) / size;
  vec4 sum = vec4(0);
  float before = -1.0;
  for (int k = 0; k <= STEPS; k++) {
    float t = begin + (float(k) + 0.5 * (1.0 - iso)) * stride;
    vec3 p = eye + t * way;
    if (iso > 0.5) {
      float now = above(p);
      if (now >= 0.0) {
        p -= way * stride * (k == 0 ? 0.0 : now / max(now - before, 1e-6));
        vec3 cell = (high - low) / 32.0, x = vec3(cell.x, 0, 0), y = vec3(0, cell.y, 0), z = vec3(0, 0, cell.z);
        vec3 n = vec3(above(p - x) - above(p + x), above(p - y) - above(p + y), above(p - z) - above(p + z)) / cell;
        n = length(n) > 0.0 ? normalize(n) : -normalize(way);
        float lit = 0.45 + 0.55 * max(dot(n, normalize(vec3(-0.55, 1.0, 0.6))), 0.0);
        float shine = pow(max(dot(reflect(normalize(way), n), normalize(vec3(-0.55, 1.0, 0.6))), 0.0), 20.0);
        result = vec4(tint(limits.x) * lit + 0.25 * shine, 1);
        return;
      }
      before = now;
    }
    vec2 v = seen(p);
    float over = smoothstep(-0.04, 0.04, v.r - limits.y), beyond = smoothstep(-0.04, 0.04, v.r - limits.z);
    float shown = over * (limits.z > 0.995 ? 1.0 : 1.0 - beyond);
    float haze = iso > 0.5 ? 0.6 : 0.6 + 9.0 * shown;  // the body's own outline stays to be seen
    float alpha = 1.0 - exp(-haze * v.g * thick);
    sum += (1.0 - sum.a) * alpha * vec4(iso > 0.5 ? vec3(0.75) : mix(vec3(0.75), tint(v.r), shown), 1);
    if (sum.a > 0.98) break;
  }
  result = sum;
}
`;

/** The grid of one body. */
export class Volume {
  constructor(gl) {
    this.gl = gl;
    this.texture = gl.createTexture();
  }

  show(part) {
    const { gl } = this, { grid } = part.about;
    this.part = part;
    gl.activeTexture(gl.TEXTURE0 + UNIT);
    gl.bindTexture(gl.TEXTURE_3D, this.texture);
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    gl.texImage3D(gl.TEXTURE_3D, 0, gl.RG8, grid, grid, grid, 0, gl.RG, gl.UNSIGNED_BYTE, part.blobs.records);
    for (const side of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T, gl.TEXTURE_WRAP_R]) {
      gl.texParameteri(gl.TEXTURE_3D, side, gl.CLAMP_TO_EDGE);
    }
    for (const filter of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) {
      gl.texParameteri(gl.TEXTURE_3D, filter, gl.LINEAR);
    }
  }

  free() {
    this.gl.deleteTexture(this.texture);
  }
}

export class VolumeProgram {
  constructor(gl) {
    this.gl = gl;
    this.program = new Program(gl, WHOLE_VERTEX, FRAGMENT);
  }

  /** Over the picture, the farthest first; `colors` and `front` are units of the legend and of the depth. */
  draw(volumes, camera, common, { at, low, high }, units) {
    const { gl } = this, away = ({ part: { about } }) => Math.hypot(...subtract(about.lower, camera.eye));
    if (!volumes.length) return;
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.enable(gl.SCISSOR_TEST);
    for (const { part: { about }, texture } of [...volumes].sort((one, other) => away(other) - away(one))) {
      gl.activeTexture(gl.TEXTURE0 + UNIT);
      gl.bindTexture(gl.TEXTURE_3D, texture);
      gl.scissor(...camera.bounds(cornersOf({ low: about.lower, high: about.upper }), ...common.pixels));
      const [lower, upper] = [about.lower, about.upper].map((corner) => subtract(corner, camera.target));
      this.program.use(common, units, { grid: UNIT, low: lower, high: upper, right: camera.right, up: camera.up,
        ahead: camera.ahead, limits: [at, low, high], iso: about.mode === "iso" ? 1 : 0 });
      gl.bindVertexArray(null);
      gl.drawArrays(gl.TRIANGLES, 0, 3);
    }
    gl.disable(gl.SCISSOR_TEST);
    gl.disable(gl.BLEND);
  }
}
