/**
 * Light maps: the scene seen from the light and from below, drawn into one small grid on the ground.
 *
 * A point p belongs to the place where the light's ray through it meets the ground. There the map knows how far things
 * reach toward the light (its depth), the color of the light that comes through them, how high they are, and how close
 * above the ground something is. Mip levels are the blurred versions: the higher what casts a shadow, the softer it is.
 */

import { Program, bindTextures, makeTarget, makeTexture } from "phyxel/gl.js";
import { STUDIO, lookNamed } from "phyxel/looks.js";
import { RECORD, TEXTURES } from "phyxel/shaders.js";
import { SPLAT_RECORDS } from "phyxel/splats.js";
import { dot } from "phyxel/vectors.js";

const TEXELS = 512;
const LEVELS = 8;
const SLOPE = [STUDIO.toLight[0] / STUDIO.toLight[1], STUDIO.toLight[2] / STUDIO.toLight[1]];

/** Where a point is in the map, 0..1, and how far from the light. Shared with what reads the map. */
export const PLACE_IN_MAP = `
uniform vec4 mapPlace;  // corner x, z [m], one over its width [1/m], level of the ground [m]
uniform vec2 mapSlope, mapTops;  // least reach toward the light [m], one over the range [1/m]
uniform vec3 toLight;
vec3 inMap(vec3 p) {
  vec2 ground = (p.xz - mapSlope * (p.y - mapPlace.w) - mapPlace.xy) * mapPlace.z;
  return vec3(ground, 1.0 - (dot(p, toLight) - mapTops.x) * mapTops.y);
}
`;

const VERTEX = `${RECORD}${PLACE_IN_MAP}
uniform float solid, translucency, below, penumbra, contactReach;
out vec4 light;
out float height;

void main() {
  read(gl_VertexID);
  vec3 p = at(), n = normalInBox();
  mat2x3 axes = solid > 0.5 ? mat2x3(0.0) : halfAxes(n);
  n = turn * n;
  float up = max(p.y - mapPlace.w, 0.0), texels = mapPlace.z * ${TEXELS}.0;
  vec3 map = inMap(p);
  vec2 slope = mapSlope;
  light = vec4(translucency * albedo(gl_VertexID), 1.0);
  height = min(up / penumbra, 1.0);
  bool seen = solid > 0.5 || sheet > 0.5 || dot(n, toLight) > 0.0;
  if (below > 0.5) {
    float close = max(1.0 - up / contactReach, 0.0);
    slope = vec2(0);
    map = vec3((p.xz - mapPlace.xy) * mapPlace.z, 0.5);
    light = vec4(close * close);
    seen = close > 0.0;
  }
  vec2 a = axes[0].xz - slope * axes[0].y, b = axes[1].xz - slope * axes[1].y;
  gl_PointSize = max((length(vec2(a.x, b.x)) + length(vec2(a.y, b.y))) * texels, 1.0);
  gl_Position = seen ? vec4(map * 2.0 - 1.0, 1.0) : vec4(2.0, 2.0, 2.0, 1.0);
}
`;

/** Splats throw shadows as points of about their size. */
const SPLAT_VERTEX = `${SPLAT_RECORDS}${PLACE_IN_MAP}
uniform float below, penumbra, contactReach;
out vec4 light;
out float height;

void main() {
  vec3 p = middleOf(gl_VertexID);
  mat3 spread = covarianceOf(gl_VertexID);
  float up = max(p.y - mapPlace.w, 0.0), close = max(1.0 - up / contactReach, 0.0);
  vec3 map = below > 0.5 ? vec3((p.xz - mapPlace.xy) * mapPlace.z, 0.5) : inMap(p);
  light = below > 0.5 ? vec4(close * close) : vec4(0, 0, 0, 1);
  height = min(up / penumbra, 1.0);
  gl_PointSize = max(2.0 * sqrt(max(spread[0][0], spread[2][2])) * mapPlace.z * ${TEXELS}.0, 1.0);
  bool seen = colorOf(gl_VertexID).a > 0.3 && (below < 0.5 || close > 0.0);
  gl_Position = seen ? vec4(map * 2.0 - 1.0, 1.0) : vec4(2.0, 2.0, 2.0, 1.0);
}
`;

const FRAGMENT = `
in vec4 light;
in float height;
layout(location = 0) out vec4 shade;
layout(location = 1) out vec4 raised;
void main() {
  shade = light;
  raised = vec4(height);
}
`;

export class ShadowMap {
  constructor(gl) {
    this.gl = gl;
    this.program = new Program(gl, VERTEX, FRAGMENT);
    this.splatProgram = new Program(gl, SPLAT_VERTEX, FRAGMENT);
    const soft = { linear: true, levels: LEVELS };
    this.shade = makeTexture(gl, TEXELS, TEXELS, gl.RGBA8, soft);
    this.raised = makeTexture(gl, TEXELS, TEXELS, gl.R8, soft);
    this.contact = makeTexture(gl, TEXELS, TEXELS, gl.RGBA8, soft);
    this.tops = makeTexture(gl, TEXELS, TEXELS, gl.DEPTH_COMPONENT24);
    this.cast = makeTarget(gl, [this.shade, this.raised], this.tops);
    this.under = makeTarget(gl, [this.contact]);
    this.uniforms = { mapPlace: [0, 0, 1, 0], mapTops: [0, 1], mapSlope: SLOPE, toLight: STUDIO.toLight,
      penumbra: 1, contactReach: 1 };
  }

  /** Lay the map under a box about `base`; its texel takes sizes in steps and its corner lies on whole texels of the
   * world, so that shadows do not shimmer as things or the camera move. */
  #lay(box, base, level, size) {
    const heights = [box.low[1] - level, box.high[1] - level, 0].map((height) => Math.max(height, 0));
    const shifted = (k, slope, corner) => heights.map((height) => corner[k] - slope * height);
    const ends = [[0, SLOPE[0]], [2, SLOPE[1]]].map(([k, slope]) => [
      Math.min(...shifted(k, slope, box.low)), Math.max(...shifted(k, slope, box.high))]);
    const room = 0.15 * Math.max(...box.high.map((high, k) => high - box.low[k])) + 1e-9;
    const width = Math.max(...ends.map(([from, to]) => to - from)) + 2 * room;
    const texel = 2 ** (Math.ceil(4 * Math.log2(width / (TEXELS - 8))) / 4);
    const step = 8 * texel;
    const corner = ends.map(([from, to]) => Math.floor((0.5 * (from + to) - 0.5 * TEXELS * texel) / step) * step);
    const edges = ends.map(([from, to]) => [from - room, to + room]);
    this.corners = edges[0].flatMap((x) => edges[1].map((z) => [x, level, z]));
    const reach = [0, 1, 2].map((k) => Math.abs(STUDIO.toLight[k]) * 0.5 * (box.high[k] - box.low[k]));
    const half = reach[0] + reach[1] + reach[2] + 1e-9;
    const middle = dot(STUDIO.toLight, box.low.map((low, k) => 0.5 * (low + box.high[k]) - base[k]));
    Object.assign(this.uniforms, {
      mapPlace: [corner[0] - base[0], corner[1] - base[2], 1 / (TEXELS * texel), level - base[1]],
      mapTops: [middle - 1.01 * half, 1 / (2.02 * half)],
      mapTexel: texel, penumbra: 0.6 * size, contactReach: 0.25 * size,
    });
  }

  /** Draw what casts shadows; `box` holds it, `level` is the height it stands on [m]. */
  draw(solids, splats, box, base, level, size, legend) {
    const { gl } = this;
    this.#lay(box, base, level, size);
    gl.viewport(0, 0, TEXELS, TEXELS);
    bindTextures(gl, [legend]);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.cast);
    gl.clearColor(0, 0, 0, 0);
    gl.enable(gl.DEPTH_TEST);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    this.#drawAll(solids, splats, 0);
    gl.disable(gl.DEPTH_TEST);
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.under);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.enable(gl.BLEND);
    gl.blendEquation(gl.MAX);
    this.#drawAll(solids, splats, 1);
    gl.blendEquation(gl.FUNC_ADD);
    gl.disable(gl.BLEND);
    for (const texture of [this.shade, this.raised, this.contact]) {
      gl.bindTexture(gl.TEXTURE_2D, texture);
      gl.generateMipmap(gl.TEXTURE_2D);
    }
  }

  #drawAll(solids, splats, below) {
    if (solids.length) this.program.use(this.uniforms, TEXTURES, { below });
    for (const solid of solids) {
      const { translucency } = lookNamed(solid.part.about.look);
      this.program.set({ ...solid.uniforms, translucency, solid: solid.faces ? 1 : 0 });
      solid.drawVertices();
    }
    for (const one of splats) {
      this.splatProgram.use(this.uniforms, TEXTURES, one.uniforms, { below });
      one.drawPoints();
    }
  }
}

const SPLINE = `
vec4 splineWeights(float f) {
  float g = 1.0 - f;
  return vec4(g * g * g, 4.0 + 3.0 * f * f * (f - 2.0), 4.0 + 3.0 * g * g * (g - 2.0), f * f * f) / 6.0;
}

`;

/** Light that reaches a place on the ground. */
export const READ_GROUND = `${PLACE_IN_MAP}${SPLINE}
uniform sampler2D mapShade, mapRaised, mapContact;

// A mip level smoothed with a cubic spline: four bilinear looks, no squares to be seen.
vec4 smoothLevel(sampler2D map, vec2 at, float level) {
  float texels = ${TEXELS}.0 / exp2(level);
  vec2 p = at * texels - 0.5, f = fract(p), corner = p - f + 0.5;
  vec4 x = splineWeights(f.x), y = splineWeights(f.y);
  vec2 low = vec2(x.x + x.y, y.x + y.y), high = vec2(x.z + x.w, y.z + y.w);
  vec2 first = (corner - 1.0 + vec2(x.y, y.y) / low) / texels, last = (corner + 1.0 + vec2(x.w, y.w) / high) / texels;
  return low.y * (low.x * textureLod(map, first, level) + high.x * textureLod(map, vec2(last.x, first.y), level))
    + high.y * (low.x * textureLod(map, vec2(first.x, last.y), level) + high.x * textureLod(map, last, level));
}

vec4 softly(sampler2D map, vec2 at, float level) {
  float whole = floor(level);
  return mix(smoothLevel(map, at, whole), smoothLevel(map, at, whole + 1.0), level - whole);
}

vec3 lightOnGround(vec2 ground) {
  vec2 at = (ground - mapPlace.xy) * mapPlace.z, inside = min(at, 1.0 - at);
  if (min(inside.x, inside.y) < 0.0) return vec3(1);
  vec4 wide = smoothLevel(mapShade, at, 5.0);
  float height = smoothLevel(mapRaised, at, 5.0).r / (wide.a + 1e-4);
  vec4 thrown = softly(mapShade, at, 1.2 + 3.3 * sqrt(clamp(height, 0.0, 1.0)));
  // Only what nearly touches the ground is seen in it with edges.
  float touch = smoothLevel(mapContact, at, 1.5).r;
  float contact = max(touch * touch, 0.6 * smoothLevel(mapContact, at, 4.0).r);
  return (1.0 - 0.75 * contact) * (1.0 - 0.55 * thrown.a + 0.45 * thrown.rgb);
}

`;

/** How deep a point lies behind what is lit. */
export const READ_SKIN = `${PLACE_IN_MAP}${SPLINE}
uniform sampler2D mapDepth;

// Nearly exp(-x) for x >= 0.
float fade(float x) {
  x = max(1.0 - 0.125 * x, 0.0);
  x *= x;
  x *= x;
  return x * x;
}

// How far p lies behind the skin that faces the light [m], and how open it is to the light, 0..1: means over 4 x 4
// texels, every fourth one, where single texels would draw stairs.
vec2 behindSkin(vec3 p, float crisp, float texel) {
  vec3 map = inMap(p);
  vec2 place = clamp(map.xy * ${TEXELS}.0 - 0.5, 4.0, ${TEXELS - 13}.0) * 0.25;
  vec4 across = splineWeights(fract(place.x)), down = splineWeights(fract(place.y));
  ivec2 first = 4 * (ivec2(place) - 1);
  float here = map.z - 8.0 * texel * mapTops.y;  // slopes must not shade themselves
  vec2 mean = vec2(0);
  for (int j = 0; j < 4; j++)
    for (int i = 0; i < 4; i++) {
      float buried = max(here - texelFetch(mapDepth, first + 4 * ivec2(i, j), 0).r, 0.0) / mapTops.y;
      mean += down[j] * across[i] * vec2(buried, fade(buried * crisp));
    }
  return mean;
}
`;
