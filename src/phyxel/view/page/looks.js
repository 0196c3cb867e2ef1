/** What bodies seem to be made of, as in `phyxel/look.py`; and the light of the studio, as in `phyxel/render`. */

import { cross, unit } from "phyxel/vectors.js";

const LOOKS = {
  gummy: { wrap: 0.45, powder: 0, shine: 1, blur: 0.06, translucency: 0.75, depth: 0.22, grain: 0 },
  wax: { wrap: 0.6, powder: 0, shine: 1, blur: 0.3, translucency: 0.6, depth: 0.3, grain: 0 },
  clay: { wrap: 0, powder: 0.7, shine: 0.12, blur: 0.8, translucency: 0, depth: 0.15, grain: 0 },
  stone: { wrap: 0, powder: 0.35, shine: 0.3, blur: 0.55, translucency: 0, depth: 0.15, grain: 0.14 },
  painted: { wrap: 0, powder: 0, shine: 0, blur: 1, translucency: 0, depth: 1, grain: 0 },
  matte: { wrap: 0.2, powder: 0, shine: 0.5, blur: 0.5, translucency: 0, depth: 0.15, grain: 0 },
};
const NAMES = Object.keys(LOOKS);

/** What is painted shows its colors as they are, without light: a section through a body. */
export const PAINTED = NAMES.indexOf("painted");

export const lookNamed = (name) => LOOKS[name] ?? LOOKS.matte;
export const rowOf = (name) => (name in LOOKS ? NAMES.indexOf(name) : NAMES.length - 1);

/** Rows of the looks for shaders: wrap, Oren and Nayar's A and B, shine; blur, translucency, 1 / depth, grain. */
export const STUFF = new Float32Array(Object.values(LOOKS).flatMap((look) => {
  const variance = look.powder ** 2;
  const even = 1 - (0.5 * variance) / (variance + 0.33), back = (0.45 * variance) / (variance + 0.09);
  return [look.wrap, even, back, look.shine, look.blur, look.translucency, 1 / look.depth, look.grain];
}));

const toLight = unit([-0.55, 1, 0.6]);
const side = unit(cross([0, 1, 0], toLight));

/** A large soft box, a strip light behind the object, soft light from above and below; linear colors. */
export const STUDIO = {
  toLight,
  boxSide: side,
  boxTop: cross(toLight, side),
  behind: unit([-toLight[0], 0.35, -toLight[2]]),
  keyLight: [1, 0.97, 0.92],
  skyLight: [0.5, 0.53, 0.58],
  bounceLight: [0.3, 0.28, 0.26],
};

const linear = (color) => color.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));

const room = (top, bottom, floor) => ({ roomTop: linear(top), roomBottom: linear(bottom), roomFloor: linear(floor) });

/** Light of the background at the top and at the bottom, and of the floor. */
export const ROOMS = {
  studio: room([0.74, 0.78, 0.83], [0.96, 0.96, 0.955], [0.955, 0.95, 0.945]),
  dark: room([0.155, 0.165, 0.19], [0.075, 0.08, 0.095], [0.115, 0.12, 0.135]),
};
