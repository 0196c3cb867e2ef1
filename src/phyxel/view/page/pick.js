/** What of the bodies lies under the pointer: of all that its ray meets, what is nearest to the eye. */

const REACH = 0.005; // of a point from the ray that still counts, as a part of its distance from the eye
const WIDE = 1.5; // of what has no size of its own: its radius over the mean distance of points on a surface
const COARSER = 60000; // larger parts are looked at in every second, third ... record

/** `frame` as decoded, ray from `origin` along the unit vector `way`. Returns the place [m], or null. */
export function pick(frame, origin, way) {
  let nearest = null;
  for (const part of frame?.parts ?? []) {
    if (part.about.collider || part.kind === "volume" || !part.blobs.records) continue;
    const found = nearestOf(part.about.count, origin, way, ...(part.kind === "splats" ? splats(part) : records(part)));
    if (found && (!nearest || found.depth < nearest.depth)) nearest = found;
  }
  return nearest && nearest.place;
}

/** How to read place and radius [m] of a record of surfels, vertices or dots. */
function records({ kind, about, blobs }) {
  const { lower, upper, finest, count } = about, { buffer, byteOffset, byteLength } = blobs.records;
  const words = new Uint16Array(buffer, byteOffset, byteLength >> 1), bytes = blobs.records;
  const step = lower.map((low, axis) => (upper[axis] - low) / 65535);
  const width = kind === "dots" ? 4 : 8;
  const place = (k, into) => {
    for (let axis = 0; axis < 3; axis++) into[axis] = lower[axis] + words[width * k + axis] * step[axis];
  };
  if (kind !== "surfels") return [place, () => (kind === "dots" ? finest : spacing(lower, upper, count))];
  const radii = Float64Array.from({ length: 256 }, (_, code) => finest * 2 ** ((code - 255) / 16));
  return [place, (k) => radii[bytes[16 * k + 12]]];
}

function splats({ about, blobs }) {
  const { lower, upper, count } = about, { buffer, byteOffset, byteLength } = blobs.records;
  const view = new DataView(buffer, byteOffset, byteLength), radius = spacing(lower, upper, count);
  const place = (k, into) => {
    for (let axis = 0; axis < 3; axis++) into[axis] = lower[axis] + view.getFloat32(28 * k + 4 * axis, true);
  };
  return [place, () => radius];
}

function spacing(lower, upper, count) {
  return (WIDE * Math.hypot(...upper.map((high, axis) => high - lower[axis]))) / Math.sqrt(count);
}

function nearestOf(count, origin, way, read, radius) {
  const place = [0, 0, 0];
  const stride = Math.max(1, Math.ceil(count / COARSER));
  let depth = Infinity, best = -1;
  for (let k = 0; k < count; k += stride) {
    read(k, place);
    const x = place[0] - origin[0], y = place[1] - origin[1], z = place[2] - origin[2];
    const along = x * way[0] + y * way[1] + z * way[2];
    if (along <= 0 || along >= depth) continue;
    if (x * x + y * y + z * z - along * along > Math.max(radius(k), REACH * along) ** 2) continue;
    depth = along;
    best = k;
  }
  if (best < 0) return null;
  read(best, place);
  return { depth, place };
}
