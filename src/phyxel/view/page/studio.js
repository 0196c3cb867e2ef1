/** The light of the studio on what is seen, pixel by pixel, as in `phyxel/render` (shade, pixels, backdrop). */

import { PAINTED, STUFF } from "phyxel/looks.js";
import { READ_GROUND, READ_SKIN } from "phyxel/shadow.js";

const AROUND = 8;

/** Places in the unit disc along a spiral, closer together toward its middle. */
const SPIRAL = Array.from({ length: AROUND }, (_, k) => {
  const radius = (k + 0.5) / AROUND, turn = Math.PI * (3 - Math.sqrt(5)) * k;
  return `vec2(${(radius * Math.cos(turn)).toFixed(5)}, ${(radius * Math.sin(turn)).toFixed(5)})`;
}).join(", ");

/** What all of it wants to know. */
const PICTURE = `
uniform mat4 view;
uniform vec2 pixels;  // of the picture
uniform vec3 eye;  // about the base [m]
uniform float tall, size, level, grounded;
out vec4 result;

// Through a pixel, 1 long along the view's axis; in the frame of the eye.
vec3 rayThrough(vec2 pixel) { return vec3((2.0 * pixel - pixels) * tall / pixels.y, -1.0); }

// Display values for light, within 0.3 % of the standard's curve. Steps of gradients hide in noise (Jimenez).
vec3 display(vec3 c) {
  float noise = fract(52.9829189 * fract(dot(gl_FragCoord.xy, vec2(0.06711056, 0.00583715)))) - 0.5;
  vec3 s = sqrt(clamp(c, 0.0, 1.0)), ss = sqrt(s), sss = sqrt(ss);
  return 0.662002687 * s + 0.684122060 * ss - 0.323583601 * sss - 0.022541147 * c + noise / 255.0;
}
`;

/**
 * Background and floor, which fades into it with distance: no horizon. Drawn without shadows everywhere, then with them
 * where they can be.
 */
export const BACKDROP_FRAGMENT = `${PICTURE}${READ_GROUND}
uniform vec3 roomTop, roomBottom, roomFloor;

void main() {
  vec3 ray = rayThrough(gl_FragCoord.xy) * mat3(view);
  vec3 color = mix(roomBottom, roomTop, gl_FragCoord.y / pixels.y);
  float drop = eye.y - level;
  bool onFloor = grounded > 0.5 && ray.y < 0.0 && drop > 0.0;
  vec2 hit = eye.xz - drop / (onFloor ? ray.y : -1.0) * ray.xz;
  float spread = 1.44 * dot(eye, eye);
  // To an eye close to the floor it ends within few pixels: there the background begins as bright as it.
  float low = drop * drop / (0.0144 * dot(eye, eye)), rise = ray.y * ray.y / (0.03 * dot(ray, ray));
  color = mix(color, roomFloor, grounded * exp(-low - rise));
  vec3 light = vec3(1);
#ifdef SHADOWED
  light = lightOnGround(hit);
#endif
  color = mix(color, roomFloor * light, onFloor ? spread / (spread + dot(hit, hit)) : 0.0);
  result = vec4(display(color), 1.0);
}
`;

const NEAREST = `
uniform sampler2D front;
uniform vec2 reach;  // nearest and farthest depth [m]

float depthAt(ivec2 pixel) {
  float z = texelFetch(front, pixel, 0).r;
  return reach.x * reach.y / (reach.y - z * (reach.y - reach.x));
}
`;

/**
 * Soft light that things close by take away: the mean over places around of the cosine they are seen at, which fades
 * with distance. A plane hides nothing of itself. For every second pixel each way, each of 4 x 4 in its own directions;
 * with it the depth in 16 bits.
 */
export const CROWDING_FRAGMENT = `${PICTURE}${NEAREST}
uniform sampler2D normals;
const vec2 SPIRAL[${AROUND}] = vec2[](${SPIRAL});

void main() {
  ivec2 pixel = min(ivec2(gl_FragCoord.xy) * 2, ivec2(pixels) - 1);
  ivec2 cell = ivec2(gl_FragCoord.xy) & 3;
  float angle = float(((cell.x * 5 + cell.y * 4 + (cell.x & cell.y)) * 3) & 15) * (6.2831853 / 16.0);
  mat2 turned = mat2(cos(angle), sin(angle), -sin(angle), cos(angle));
  float depth = depthAt(pixel), near = 0.15 * size, sum = 0.0;
  vec3 p = depth * rayThrough(vec2(pixel) + 0.5), n = texelFetch(normals, pixel, 0).xyz;
#ifndef BLENDED
  n = n * 2.0 - 1.0;
#endif
  n = mat3(view) * normalize(n + vec3(0, 1e-6, 0));
  float wide = min(near * pixels.y / (2.0 * tall * depth), 0.09 * pixels.y);
  for (int k = 0; k < ${AROUND}; k++) {
    ivec2 other = clamp(pixel + ivec2(floor(turned * SPIRAL[k] * wide + 0.5)), ivec2(0), ivec2(pixels) - 1);
    vec3 way = rayThrough(vec2(other) + 0.5) * depthAt(other) - p;
    float far = dot(way, way) + 1e-20;
    float cosine = max(dot(way, n) * inversesqrt(far) - 0.1, 0.0);
    sum += cosine * max(1.0 - 0.25 * far / (near * near), 0.0);
  }
  float coded = floor(clamp((depth - reach.x) / (reach.y - reach.x), 0.0, 1.0) * 65535.0);
  float high = floor(coded / 256.0);
  result = vec4(sum * 2.4 / ${AROUND}.0, high / 255.0, (coded - 256.0 * high) / 255.0, 1.0);
}
`;

/** Bodies and colliders, where any are seen. */
export const BODY_FRAGMENT = `${PICTURE}${NEAREST}${READ_SKIN}
uniform sampler2D colors, normals, marks, crowding;
uniform float mapTexel;
uniform vec3 boxSide, boxTop, behind, keyLight, skyLight, bounceLight;
uniform vec4 stuff[${STUFF.length / 4}];

// Mean over the 4 x 4 places around at which it was looked for what hides the light, each in other directions, but for
// those of other depths.
float hiddenAround(ivec2 pixel, float depth) {
  ivec2 first = ivec2(floor(0.5 * (vec2(pixel) - 0.5))) - 1, last = textureSize(crowding, 0) - 1;
  vec2 sum = vec2(0);
  for (int j = 0; j < 4; j++)
    for (int i = 0; i < 4; i++) {
      vec3 there = texelFetch(crowding, clamp(first + ivec2(i, j), ivec2(0), last), 0).rgb;
      float away = abs(mix(reach.x, reach.y, (there.g * 256.0 + there.b) * 255.0 / 65535.0) - depth);
      sum += vec2(there.r, 1.0) * max(1.0 - away / (0.06 * size), 1e-3);
    }
  return sum.x / sum.y;
}

float squared(float x) { return x * x; }

// The studio in the mirror: above and below, and what is lit in it: ceiling, walls, a soft box, a strip light.
vec3 mirrored(vec3 m, float blur, float open) {
  float soft = 0.06 + blur;
  float above = smoothstep(0.0, 1.0, 0.5 + m.y * 0.5 / (0.2 + blur));
  float ceiling = clamp(0.5 + (m.y - 0.75) / soft * 0.5, 0.0, 1.0);
  vec2 inBox = smoothstep(0.0, 1.0, 0.5 + (vec2(0.26, 0.34) - abs(vec2(dot(m, boxSide), dot(m, boxTop)))) / soft);
  // What is blurred is spread over more directions, and as much dimmer.
  float spread = 0.0884 / ((0.26 + 0.5 * blur) * (0.34 + 0.5 * blur));
  float box = dot(m, toLight) > 0.0 ? inBox.x * inBox.y * spread * open : 0.0;
  float strip = squared(clamp(0.5 + (dot(m, behind) - 0.85) / soft * 0.5, 0.0, 1.0)) / (1.0 + 2.0 * blur);
  float walls = max(1.0 - 2.0 * abs(m.y), 0.0);
  return mix(bounceLight, skyLight, above) + (12.0 * box + 1.5 * strip + 0.8 * ceiling + 0.3 * walls) * keyLight;
}

vec3 lit(vec3 albedo, vec3 p, vec3 n, int row, float free) {
  vec4 first = stuff[2 * row], second = stuff[2 * row + 1];
  float wrap = first.x, even = first.y, back = first.z, shine = first.w;
  float blur = second.x, translucency = second.y, shallow = second.z;
  vec3 toEye = normalize(eye - p);
  float facing = clamp(dot(n, toEye), 0.0, 1.0), toward = dot(n, toLight), crisp = 1.0 / (0.03 * size);
  vec2 skinned = behindSkin(p, crisp, mapTexel);

  // Of the two halves of an evenly lit surrounding a place sees (1 ± n.y) / 2.
  float upward = 0.5 + 0.5 * n.y;
  float crowded = grounded * fade(max(p.y - level, 0.0) * 0.3 * crisp) * (1.0 - 0.6 * upward);
  vec3 ambient = (1.0 - 0.75 * crowded) * mix(bounceLight, skyLight, upward);
  float wrapped = max(toward * (1.0 - wrap) + wrap, 0.0);
  float beside = max(dot(toEye, toLight) - toward * facing, 0.0) / max(max(toward, facing), 1e-3);
  vec3 skin = albedo * (ambient + wrapped * (even + back * beside) * skinned.y * keyLight);

  // Light that entered elsewhere: what is absorbed grows with the way it went, so thick parts turn deep in hue.
  float way = 1.2 * (skinned.x * shallow / size + facing);
  vec3 kept = vec3(fade(way * (1.1 - albedo.r)), fade(way * (1.1 - albedo.g)), fade(way * (1.1 - albedo.b)));
  vec3 entered = (0.55 + 0.25 * toward + 0.2 * upward) * (ambient + 0.6 * keyLight);
  vec3 within = 0.35 * skin + 0.85 * kept * albedo / (albedo + 0.12) * entered;
  vec3 body = mix(skin, within, translucency);

  // Light that goes to and fro in a corner takes on its color instead of being lost.
  body *= free / (1.0 - (1.0 - free) * min(body, 0.9));
  float graze = 1.0 - facing;
  float mirror = shine * (0.04 + 0.96 * (1.0 - blur) * squared(squared(graze)) * graze);
  return body * (1.0 - mirror)
    + free * free * mirror * mirrored(2.0 * facing * n - toEye, blur, skinned.y * (1.0 - crowded));
}

// Film-like rolling off of what is too bright: straight up to 0.6, then bending, level at 1.
vec3 film(vec3 light) {
  vec3 over = clamp(light - 0.6, 0.0, 0.8);
  return min(light, 0.6) + over - 0.625 * over * over;
}

void main() {
  ivec2 pixel = ivec2(gl_FragCoord.xy);
  vec3 seen = rayThrough(gl_FragCoord.xy);
  vec4 sum = texelFetch(colors, pixel, 0), along = texelFetch(normals, pixel, 0);
#ifdef BLENDED
  along /= max(sum.a, 1e-6);
  sum /= max(sum.a, 1e-6);
#else
  along.xyz = along.xyz * 2.0 - 1.0;
#endif
  float nearest = depthAt(pixel), depth = nearest + along.w * size;
  vec3 p = eye + depth * (seen * mat3(view)), n = normalize(along.xyz);
  float free = max(1.0 - hiddenAround(pixel, nearest), 0.15);
  int row = int(texelFetch(marks, pixel, 0).r * 255.0 + 0.5);
  vec3 color = row == ${PAINTED} ? sum.rgb : film(lit(sum.rgb, p, n, row, free));
  // The ground hides what is below it, with a soft step about a pixel wide.
  float over = clamp(0.5 + (p.y - level) * pixels.y / (2.0 * tall * depth), 0.0, 1.0);
  float cover = grounded > 0.5 && eye.y > level ? over : 1.0;
  result = vec4(display(color), 1.0) * cover;
}
`;

/** The picture as it is shown: as large as the canvas, whatever it was drawn at. */
export const SHOWN_FRAGMENT = `
uniform sampler2D picture;
uniform vec2 canvas;
out vec4 result;
void main() { result = vec4(textureLod(picture, gl_FragCoord.xy / canvas, 0.0).rgb, 1.0); }
`;

/** The same with edges smoothed along themselves (after Lottes' FXAA): outlines, dots, marks alike. */
export const SMOOTH_FRAGMENT = `
uniform sampler2D picture;
uniform vec2 canvas;
out vec4 result;

float luma(vec3 c) { return dot(c, vec3(0.299, 0.587, 0.114)); }
vec3 at(vec2 pixel) { return textureLod(picture, pixel / canvas, 0.0).rgb; }

void main() {
  vec2 p = gl_FragCoord.xy;
  vec3 middle = at(p);
  float m = luma(middle);
  float nw = luma(at(p + vec2(-0.5, 0.5))), ne = luma(at(p + 0.5));
  float sw = luma(at(p - 0.5)), se = luma(at(p + vec2(0.5, -0.5)));
  float low = min(m, min(min(nw, ne), min(sw, se))), high = max(m, max(max(nw, ne), max(sw, se)));
  vec2 along = vec2((nw + ne) - (sw + se), (nw + sw) - (ne + se));
  float least = max((nw + ne + sw + se) * 0.03, 1.0 / 128.0);
  along = clamp(along / (min(abs(along.x), abs(along.y)) + least), -8.0, 8.0);
  vec3 few = 0.5 * (at(p - along / 6.0) + at(p + along / 6.0));
  vec3 more = 0.5 * few + 0.25 * (at(p - 0.5 * along) + at(p + 0.5 * along));
  vec3 smoothed = luma(more) < low || luma(more) > high ? few : more;
  result = vec4(high - low < max(0.02, 0.06 * high) ? middle : smoothed, 1.0);
}
`;
