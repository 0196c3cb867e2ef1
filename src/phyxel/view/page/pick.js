/** What of the bodies lies under the pointer: the surfel nearest to the eye of those close to its ray. */

const REACH = 0.013; // of a surfel from the ray, as a part of its distance from the eye
const COARSER = 60000; // larger parts are looked at in every second, third ... record

/** `frame` as decoded, ray from `origin` along the unit vector `way`. Returns the place [m], or null. */
export function pick(frame, origin, way) {
  let nearest = null;
  for (const part of frame?.parts ?? []) {
    if (part.about.collider || !part.blobs.records) continue;
    const found = part.kind === "splats" ? inSplats(part, origin, way) : inRecords(part, origin, way);
    if (found && (!nearest || found.depth < nearest.depth)) nearest = found;
  }
  return nearest && nearest.place;
}

function inRecords(part, origin, way) {
  const { count, lower, upper } = part.about;
  const words = new Uint16Array(part.blobs.records.buffer, part.blobs.records.byteOffset,
    part.blobs.records.byteLength >> 1);
  const size = lower.map((low, axis) => (upper[axis] - low) / 65535);
  const width = part.kind === "dots" ? 4 : 8;
  return nearestOf(count, origin, way, (k, place) => {
    for (let axis = 0; axis < 3; axis++) place[axis] = lower[axis] + words[width * k + axis] * size[axis];
  });
}

function inSplats(part, origin, way) {
  const { count, lower } = part.about;
  const { buffer, byteOffset, byteLength } = part.blobs.records;
  const view = new DataView(buffer, byteOffset, byteLength);
  return nearestOf(count, origin, way, (k, place) => {
    for (let axis = 0; axis < 3; axis++) place[axis] = lower[axis] + view.getFloat32(28 * k + 4 * axis, true);
  });
}

function nearestOf(count, origin, way, read) {
  const place = [0, 0, 0];
  const stride = Math.max(1, Math.ceil(count / COARSER));
  let depth = Infinity, best = -1;
  for (let k = 0; k < count; k += stride) {
    read(k, place);
    const x = place[0] - origin[0], y = place[1] - origin[1], z = place[2] - origin[2];
    const along = x * way[0] + y * way[1] + z * way[2];
    if (along <= 0 || along >= depth) continue;
    if (x * x + y * y + z * z - along * along > (REACH * along) ** 2) continue;
    depth = along;
    best = k;
  }
  if (best < 0) return null;
  read(best, place);
  return { depth, place };
}
