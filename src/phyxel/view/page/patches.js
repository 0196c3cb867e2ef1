/** Surfels of a recording that move patch by patch, as `view/patches.py` packs them, unpacked as records again. */

const RECORD = 16; // [bytes]
const ROWS = 2 ** 22; // more than any part has

/** Frames in a row: whatever has patches gets records. */
export class Unpacker {
  constructor() {
    this.tracks = new Map();
  }

  unpack({ parts, ...frame }) {
    const before = this.tracks;
    this.tracks = new Map();
    return { ...frame, parts: parts.map((part) => this.part(part, before.get(part.name))) };
  }

  part(part, before) {
    const { first, motion, offsets, values, ...blobs } = part.blobs;
    if (!first && !motion) return part;
    const track = first ? new Track(first, part.about) : before;
    if (motion) track.follow(motion, offsets, values);
    this.tracks.set(part.name, track);
    const records = first ? track.rows.slice() : track.records(part.about);
    return { ...part, blobs: { records, ...blobs }, keys: { records: null, ...part.keys } };
  }
}

/** The surfels of a part from a first frame on; in the order of patches, but for `rows`. */
class Track {
  constructor(first, { count, code, lower, upper, finest }) {
    Object.assign(this, { count, code, patches: Math.ceil(count / code.patch) });
    this.rows = new Uint8Array(RECORD * count);
    for (let k = 0; k < first.length; k++) this.rows[RECORD * (k % count) + Math.floor(k / count)] = first[k];
    this.words = new Uint16Array(this.rows.buffer);
    this.normals = new Int16Array(this.rows.buffer);
    this.order = alongCurve(this.words, count);
    this.centre = new Float64Array(3 * this.patches);
    this.motion = new Int32Array(12 * this.patches);
    [this.place, this.normal, this.first] = [0, 1, 2].map(() => new Float64Array(3 * count));
    this.sizes = new Int32Array(2 * count);
    this.angle = new Int32Array(count);
    this.finest = finest;
    this.begin(lower, upper);
  }

  begin(lower, upper) {
    const { centre, count, code, order, patches, place, rows, words } = this;
    for (let i = 0; i < count; i++) {
      const row = order[i], patch = Math.floor(i / code.patch);
      for (let axis = 0; axis < 3; axis++) {
        const x = lower[axis] + (words[8 * row + axis] / 65535) * (upper[axis] - lower[axis]);
        if (i % code.patch === 0) centre[3 * patch + axis] = x;
        place[3 * i + axis] = x - centre[3 * patch + axis];
      }
      for (const k of [0, 1]) this.sizes[2 * i + k] = rows[RECORD * row + 12 + k];
      this.turnAs(i, row);
    }
    for (let patch = 0; patch < patches; patch++) {
      for (const diagonal of [0, 4, 8]) this.motion[12 * patch + diagonal] = Math.round(1 / code.turn);
    }
  }

  /** Normal and longer half axis of a record. */
  turnAs(i, row) {
    const { n, t, s } = frameOf(this.normals[8 * row + 4], this.normals[8 * row + 5]);
    const angle = (Math.PI / 255) * this.rows[RECORD * row + 14], cos = Math.cos(angle), sin = Math.sin(angle);
    for (let axis = 0; axis < 3; axis++) {
      this.normal[3 * i + axis] = n[axis];
      this.first[3 * i + axis] = cos * t[axis] + sin * s[axis];
    }
  }

  /** The next frame. */
  follow(motion, offsets, values) {
    const { code, count, patches, place, normal, words } = this;
    each(motion, 12, patches, (patch, k, more) => (this.motion[12 * patch + k] += more));
    each(offsets, 9, count, (i, k, more) => {
      if (k < 3) place[3 * i + k] += more * code.offset;
      else if (k < 6) normal[3 * i + k - 3] += more * code.tilt;
      else if (k < 8) this.sizes[2 * i + k - 6] += more;
      else this.angle[i] += more;
    });
    for (let row = 0; values && row < count; row++) {
      words[8 * row + 3] = 257 * (((words[8 * row + 3] >> 8) + values[row]) & 255);
    }
  }

  /** As they are now, in the box of this frame. */
  records({ lower, upper, finest }) {
    const { centre, code, count, motion, order, place, rows, words } = this;
    const m = new Float64Array(9), at = new Float64Array(9), finer = 16 * Math.log2(this.finest / finest) - 1e-5;
    for (let i = 0; i < count; i++) {
      const patch = Math.floor(i / code.patch), row = order[i];
      if (i % code.patch === 0) for (let k = 0; k < 9; k++) m[k] = motion[12 * patch + k] * code.turn;
      times(m, place, i, at, 0);
      times(m, this.normal, i, at, 1);
      times(m, this.first, i, at, 2);
      for (let axis = 0; axis < 3; axis++) {
        const x = at[axis] + centre[3 * patch + axis] + motion[12 * patch + 9 + axis] * code.place;
        words[8 * row + axis] = within(Math.round((65535 * (x - lower[axis])) / (upper[axis] - lower[axis])), 65535);
      }
      for (const k of [0, 1]) rows[RECORD * row + 12 + k] = within(Math.ceil(this.sizes[2 * i + k] + finer), 255);
      this.turn(i, row, at);
    }
    return rows.slice();
  }

  /** Write the normal, and the angle of the longer half axis. */
  turn(i, row, at) {
    const long = Math.abs(at[3]) + Math.abs(at[4]) + Math.abs(at[5]) || 1, under = Math.max(-at[5] / long, 0);
    for (const k of [0, 1]) {
      this.normals[8 * row + 4 + k] = Math.round(32767 * (at[3 + k] / long + signed(under, at[3 + k])));
    }
    const { t, s } = frameOf(this.normals[8 * row + 4], this.normals[8 * row + 5]);
    const angle = Math.atan2(dot(at, s), dot(at, t)) / Math.PI + (this.angle[i] * this.code.angle) / Math.PI;
    this.rows[RECORD * row + 14] = Math.round(255 * (angle - Math.floor(angle)));
  }
}

/** With the last of three vectors. */
const dot = (at, b) => at[6] * b[0] + at[7] * b[1] + at[8] * b[2];

/** The i-th vector of `from` times a matrix, as the k-th of `to`. */
function times(m, from, i, to, k) {
  const x = from[3 * i], y = from[3 * i + 1], z = from[3 * i + 2];
  to[3 * k] = m[0] * x + m[1] * y + m[2] * z;
  to[3 * k + 1] = m[3] * x + m[4] * y + m[5] * z;
  to[3 * k + 2] = m[6] * x + m[7] * y + m[8] * z;
}

/** Numbers of a blob, by columns of so many rows: `use(row, column, number)` for those that are not 0. */
function each(blob, columns, rows, use) {
  const count = columns * rows;
  for (let k = 0; k < count; k++) {
    const folded = blob[k] | (blob[count + k] << 8);
    if (folded) use(k % rows, Math.floor(k / rows), folded & 1 ? -(folded + 1) / 2 : folded / 2);
  }
}

const within = (number, most) => Math.min(Math.max(number, 0), most);

/** Which surfel is the first, second, ... along the Z curve. */
function alongCurve(words, count) {
  const places = new Float64Array(count);
  for (let row = 0; row < count; row++) {
    let place = 0;
    for (let bit = 0; bit < 10; bit++) {
      for (let axis = 0; axis < 3; axis++) place |= ((words[8 * row + axis] >> (6 + bit)) & 1) << (3 * bit + axis);
    }
    places[row] = place * ROWS + row;
  }
  return Uint32Array.from(places.sort(), (place) => place % ROWS);
}

const signed = (size, like) => (like < 0 ? -size : size);

/** The normal that is coded so, and what angles count from and to: see `view/encode.py`. */
function frameOf(u16, v16) {
  const u = u16 / 32767, v = v16 / 32767, z = 1 - Math.abs(u) - Math.abs(v), under = Math.max(-z, 0);
  const n = [u - signed(under, u), v - signed(under, v), z], long = Math.hypot(...n);
  for (let axis = 0; axis < 3; axis++) n[axis] /= long;
  const t = Math.abs(n[1]) >= 0.9 ? [0, -n[2], n[1]] : [n[2], 0, -n[0]];
  return { n, t, s: [n[1] * t[2] - n[2] * t[1], n[2] * t[0] - n[0] * t[2], n[0] * t[1] - n[1] * t[0]] };
}
