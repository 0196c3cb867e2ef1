/** Vectors of three numbers as arrays. */

export const add = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
export const subtract = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
export const scale = (a, s) => [a[0] * s, a[1] * s, a[2] * s];
export const along = (a, b, s) => [a[0] + b[0] * s, a[1] + b[1] * s, a[2] + b[2] * s];
export const mix = (a, b, s) => [a[0] + (b[0] - a[0]) * s, a[1] + (b[1] - a[1]) * s, a[2] + (b[2] - a[2]) * s];
export const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
export const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
export const length = (a) => Math.hypot(a[0], a[1], a[2]);
export const unit = (a) => scale(a, 1 / (length(a) || 1));

/** Two unit vectors that are right-handed with the unit vector n. */
export function tangents(n) {
  const first = unit(cross(Math.abs(n[1]) < 0.9 ? [0, 1, 0] : [1, 0, 0], n));
  return [first, cross(n, first)];
}

/** The box around all parts of a frame [m], each where its pose puts it; null if there is nothing. */
export function boxOf(parts) {
  const low = [Infinity, Infinity, Infinity], high = [-Infinity, -Infinity, -Infinity];
  for (const { about } of parts) {
    if (!about.count || ![...about.lower, ...about.upper].every(Number.isFinite)) continue;
    for (const corner of cornersOf({ low: about.lower, high: about.upper })) {
      const p = about.pose ? placed(about.pose, corner) : corner;
      for (let k = 0; k < 3; k++) {
        low[k] = Math.min(low[k], p[k]);
        high[k] = Math.max(high[k], p[k]);
      }
    }
  }
  return low[0] <= high[0] ? { low, high } : null;
}

/** The eight corners of a box. */
export function cornersOf({ low, high }) {
  return Array.from({ length: 8 }, (_, corner) => [0, 1, 2].map((k) => ((corner >> k) & 1 ? high : low)[k]));
}

/** A point moved by a pose: 16 numbers, column after column. */
export function placed(pose, [x, y, z]) {
  return [0, 1, 2].map((k) => pose[k] * x + pose[4 + k] * y + pose[8 + k] * z + pose[12 + k]);
}
