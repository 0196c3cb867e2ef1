/** Shaders that put surfels, triangles and dots on the screen and into the light's map. */

const LEGEND = `
uniform float valued;
uniform sampler2D legend;

vec3 linearFrom(vec3 c) { return c * (0.012522878 + c * (0.682171111 + c * 0.305306011)); }

vec3 colorOfValue(float value) { return linearFrom(texture(legend, vec2((value * 63.0 + 0.5) / 64.0, 0.5)).rgb); }
`;

/** Records of surfels, 16 bytes each, as `view/encode.py` packs them; positions and axes in metres about `base`. */
export const RECORD = `${LEGEND}
uniform highp usampler2D records, tints;
uniform mat3 turn;
uniform float tinted;
vec4 place;  // in the box, and the value on the legend, 0..1
vec2 octahedral;
vec4 shape;  // codes of the half axes, angle, flags
vec4 tint;

void read(int record) {
  ivec2 texel = ivec2(record & 1023, record >> 10);
  uvec4 words = texelFetch(records, texel, 0);
  uint color = tinted > 0.5 ? texelFetch(tints, texel, 0).r : 0xffa19c99u;
  place = vec4(words.x & 65535u, words.x >> 16, words.y & 65535u, words.y >> 16) / 65535.0;
  octahedral = max(vec2(int(words.z << 16) >> 16, int(words.z) >> 16) / 32767.0, -1.0);
  shape = vec4(words.w & 255u, (words.w >> 8) & 255u, (words.w >> 16) & 255u, words.w >> 24);
  tint = vec4(color & 255u, (color >> 8) & 255u, (color >> 16) & 255u, color >> 24) / 255.0;
}
uniform vec3 corner, extent;
uniform float finest, grain, sheet, opened, under;

vec3 at() { return corner + turn * (extent * place.xyz); }

vec3 normalInBox() {
  vec3 n = vec3(octahedral, 1.0 - abs(octahedral.x) - abs(octahedral.y));
  float t = max(-n.z, 0.0);
  n.x -= n.x < 0.0 ? -t : t;
  n.y -= n.y < 0.0 ? -t : t;
  return normalize(n);
}

// Half axes along and across, in the columns.
mat2x3 halfAxes(vec3 n) {
  vec3 first = normalize(cross(abs(n.y) < 0.9 ? vec3(0, 1, 0) : vec3(1, 0, 0), n));
  vec3 second = cross(n, first);
  float angle = shape.z * (3.14159265 / 255.0);
  vec2 radius = finest * exp2((shape.xy - 255.0) / 16.0);
  float c = cos(angle), s = sin(angle);
  return mat2x3(turn * (radius.x * (c * first + s * second)), turn * (radius.y * (c * second - s * first)));
}

// A number in -1..1 of a record's own (Wang's hash): the grain of stone stays with its surfel.
float speck(uint k) {
  k = (k ^ 61u) ^ (k >> 16);
  k *= 9u;
  k ^= k >> 4;
  k *= 0x27d4eb2du;
  return float((k ^ (k >> 15)) & 65535u) / 32767.5 - 1.0;
}

vec3 albedo(int number) {
  return (valued > 0.5 ? colorOfValue(place.w) : linearFrom(tint.rgb)) * (1.0 + grain * speck(uint(number)));
}
`;

/** Where shaders of solids look for textures. */
export const TEXTURES = { legend: 0, records: 1, tints: 2, front: 3 };

const SCREEN = `
uniform mat4 view, projection;
uniform vec2 pixels;  // of the picture
uniform float focal;  // [pixels]
uniform vec3 eye, origin;  // of the picture, and of the part [m]
`;

/** Discs. What is narrower than a pixel becomes an ellipse on the screen that is not: nothing vanishes. */
export const DISC_VERTEX = `${RECORD}${SCREEN}
out vec2 inDisc;
out float depth;
flat out float slack;
flat out vec3 normal, color;

const float NARROWEST = 0.85;  // half axis on the screen [pixels]
const float WIDER = 1.12;  // discs overlap a little more than they need to

// Corners of a triangle about the unit circle.
const vec2 CORNERS[3] = vec2[](vec2(0, 2), vec2(-1.7320508, -1), vec2(1.7320508, -1));

void main() {
  read(gl_VertexID / 3);
  vec3 n = normalInBox();
  mat2x3 axes = halfAxes(n) * WIDER;
  n = turn * n;
  vec3 c = (view * vec4(at(), 1.0)).xyz;
  vec3 m = mat3(view) * n;
  float facing = -dot(m, c);
  gl_Position = vec4(2.0, 2.0, 2.0, 1.0);
  if (sheet > 0.5 && facing < 0.0) { n = -n; facing = -facing; }
  if (!(facing > 0.0 && c.z < 0.0)) return;
  // The half toward the eye of what is opened is left out.
  if (opened > 0.5 && dot(at() - origin, eye - origin) > 0.0) return;
  vec3 a = mat3(view) * axes[0], b = mat3(view) * axes[1];
  float perDepth = focal / -c.z;
  vec2 a2 = perDepth * (a.xy - a.z * c.xy / c.z), b2 = perDepth * (b.xy - b.z * c.xy / c.z);
  vec3 v = vec3(dot(vec2(a2.x, b2.x), vec2(a2.x, b2.x)), dot(vec2(a2.x, b2.x), vec2(a2.y, b2.y)),
                dot(vec2(a2.y, b2.y), vec2(a2.y, b2.y)));
  float middle = 0.5 * (v.x + v.z), apart = sqrt(0.25 * (v.x - v.z) * (v.x - v.z) + v.y * v.y);
  float narrow = sqrt(max(middle - apart, 0.0));

  vec2 sign = CORNERS[gl_VertexID % 3];
  inDisc = sign;
  // Neighbours differ in depth by no more than a disc does, or is narrow, or a pixel is wide.
  slack = max(max(length(vec2(a.z, b.z)), min(length(axes[0]), length(axes[1]))), 1.5 / perDepth);
  float back = 1.0 - under * 2.0 * slack / c.z;  // farther by so much, in the same place of the picture
  c *= back;
  a *= back;
  b *= back;
  normal = n;
  color = albedo(gl_VertexID / 3);
  if (narrow >= NARROWEST) {
    vec3 p = c + sign.x * a + sign.y * b;
    depth = -p.z;
    gl_Position = projection * vec4(p, 1.0);
  } else {
    float wide = sqrt(middle + apart);
    vec2 major = apart > 1e-6 * middle ? vec2(v.y, middle + apart - v.x) : vec2(1, 0);
    major = dot(major, major) > 1e-12 * middle * middle ? normalize(major) : vec2(1, 0);
    vec2 corner2 = sign.x * max(wide, NARROWEST) * major + sign.y * NARROWEST * vec2(-major.y, major.x);
    depth = -c.z;
    gl_Position = projection * vec4(c, 1.0);
    gl_Position.xy += corner2 * 2.0 / pixels * gl_Position.w;
  }
}
`;

/** Triangles of a mesh, seen from both sides. */
export const MESH_VERTEX = `${RECORD}${SCREEN}
out vec2 inDisc;
out float depth;
flat out float slack;
out vec3 normal, color;
out float value;

void main() {
  read(gl_VertexID);
  vec3 p = (view * vec4(at(), 1.0)).xyz;
  value = place.w;
  inDisc = vec2(0);
  depth = -p.z;
  slack = 0.2 * depth / focal;
  normal = turn * normalInBox();
  color = albedo(gl_VertexID);
  gl_Position = projection * vec4(p, 1.0);
}
`;

/** Dots: little balls. */
export const DOT_VERTEX = `${RECORD}${SCREEN}
out float depth;
flat out float slack;
flat out vec3 color;

void main() {
  read(gl_VertexID);
  vec3 p = (view * vec4(at(), 1.0)).xyz;
  float radius = max(finest, -1.2 * p.z / focal);
  depth = -p.z;
  slack = 0.2 * radius;
  color = albedo(gl_VertexID);
  gl_Position = projection * vec4(p, 1.0);
  gl_PointSize = 2.0 * radius * focal / depth;
}
`;

const FLAT = (kind) => (kind === "MESH" ? "" : "flat");
const VARYINGS = (kind) => (kind === "DOT"
  ? "in float depth; flat in float slack; flat in vec3 color; uniform mat4 view;"
  : `in vec2 inDisc; in float depth; flat in float slack; ${FLAT(kind)} in vec3 normal, color;`);

/** What a fragment of a kind is: its square from the middle, normal, depth [m]. */
const FRAGMENT = (kind) => (kind === "DOT" ? `
  vec2 ball = vec2(gl_PointCoord.x, 1.0 - gl_PointCoord.y) * 2.0 - 1.0;
  float qq = dot(ball, ball);
  if (qq > 1.0) discard;
  float here = depth;
  vec3 n = transpose(mat3(view)) * vec3(ball, sqrt(1.0 - qq));
  qq = 0.0;` : `
  float qq = dot(inDisc, inDisc), here = depth;
  if (qq > 1.0) discard;
  vec3 n = ${kind === "MESH" ? "gl_FrontFacing ? normal : -normal" : "normal"};`);

/** First pass: the nearest, and which look it has. */
export const seenFragment = (kind) => `${VARYINGS(kind)}
uniform float row;
layout(location = 0) out vec4 mark;
void main() { ${FRAGMENT(kind)}
  mark = vec4(row / 255.0, 0, 0, 1);
}
`;

/**
 * Second pass: all that belong to the nearest surface, by weight (1 - q²)². Colour and weight; normal and how much
 * farther than the nearest they are, over the size of all. Without float blending the nearest alone.
 */
export const blendFragment = (kind) => `${VARYINGS(kind)}
${kind === "MESH" ? `${LEGEND} in float value;` : ""}
uniform sampler2D front;
uniform float size;
uniform vec2 reach;  // nearest and farthest depth of the picture [m]
layout(location = 0) out vec4 colors;
layout(location = 1) out vec4 normals;
void main() { ${FRAGMENT(kind)}
  float z = texelFetch(front, ivec2(gl_FragCoord.xy), 0).r;
  float nearest = reach.x * reach.y / (reach.y - z * (reach.y - reach.x));
  // Between corners far apart values change evenly, colors do not.
  vec3 shown = ${kind === "MESH" ? "valued > 0.5 ? colorOfValue(value) : color" : "color"};
#ifdef BLENDED
  if (here > nearest + slack) discard;
  float weight = (1.0 - qq) * (1.0 - qq) + 1e-3;
  colors = vec4(shown, 1.0) * weight;
  normals = vec4(normalize(n), (here - nearest) / size) * weight;
#else
  if (here > nearest * 1.0005) discard;
  colors = vec4(shown, 1.0);
  normals = vec4(0.5 + 0.5 * normalize(n), 0.0);
#endif
}
`;

/** A triangle that covers the picture, at the farthest depth. */
export const WHOLE_VERTEX = `
void main() { gl_Position = vec4(vec2(gl_VertexID & 1, gl_VertexID >> 1) * 4.0 - 1.0, 1.0, 1.0); }
`;
