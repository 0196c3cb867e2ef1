# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call,empty-body"
"""The inner loops of visibility: pixels in a row, in C++.

Loops over neighbouring words without branches: the compiler turns each into a few vector instructions. Warp's own
indexing (with a stride known only at run time) would leave them scalar, ten times slower.

The scratch of a tile is fourteen times 256 numbers: nearness; weight, and by weight sums of normal (3), light (3),
openness, shine, blur, slack; coverage; doubt.
"""

from __future__ import annotations

import warp as wp

from phyxel.device import KERNEL_OPTIONS
from phyxel.render.discs import ScreenDisc

ROW_OPTIONS = {
    **KERNEL_OPTIONS,
    "cpu_compiler_flags": f"{KERNEL_OPTIONS['cpu_compiler_flags']} -mprefer-vector-width=512",
}
"""Options of modules with such loops. A row of a tile is just one 512-bit word where the processor has such; the
compiler would rather take two halves."""
SCRATCH = 14 * 256
"""Numbers in the scratch of a tile."""


@wp.func_native("""
    for (int y = top; y < bottom; ++y) {
        const float dx = (float)left + 0.5f - disc.x, dy = (float)y + 0.5f - disc.y;
        const float u0 = disc.ux * dx + disc.uy * dy, v0 = disc.vx * dx + disc.vy * dy;
        const float w0 = 1.0f + disc.wx * dx + disc.wy * dy;
        const float least = disc.nearness - disc.slack, most = disc.nearness + disc.slack;
        float* near = front.data + start + (y & 15) * 16;
        for (int x = 0; x < lanes; ++x) {
            const float u = u0 + disc.ux * (float)x, v = v0 + disc.vx * (float)x, w = w0 + disc.wx * (float)x;
            const float inside = w * w - u * u - v * v;
            float here = disc.nearness * w;
            here = here > least ? here : least;
            here = here < most ? here : most;
            here = inside > 0.0f ? here : 0.0f;
            near[x] = near[x] > here ? near[x] : here;
        }
    }
""")
def raise_rows(
    disc: ScreenDisc, left: int, top: int, bottom: int, start: int, lanes: int, front: wp.array(dtype=float)
):
    """Nearest depth of the discs (physics 14.1) at the middles of `lanes` pixels from column left on, in the rows
    top..bottom; `start` is where row 0 of their tile has the first of them."""


@wp.func_native("""
    for (int y = top; y < bottom; ++y) {
        const float dx = (float)left + 0.5f - disc.x, dy = (float)y + 0.5f - disc.y;
        const float f0 = disc.fx * dx + disc.fy * dy, g = disc.gy * dy;
        const float w0 = 1.0f + disc.wx * dx + disc.wy * dy;
        const float least = disc.nearness - disc.slack, most = disc.nearness + disc.slack, depth = 1.0f / disc.nearness;
        const float* __restrict__ near = scratch.data + start + (y & 15) * 16;
        float* __restrict__ sum = scratch.data + start + 256 + (y & 15) * 16;
        for (int x = 0; x < lanes; ++x) {
            const float f = f0 + disc.fx * (float)x;
            float here = disc.nearness * (w0 + disc.wx * (float)x);
            here = here > least ? here : least;
            here = here < most ? here : most;
            const float w = here * depth, inside = w * w - f * f - g * g;
            const float before = here - near[x];
            const float same = before >= -disc.slack ? inside : 0.0f;
            const float positive = same > 0.0f ? same : 0.0f;
            const float fringe = inside > -0.6f ? before - disc.slack : 0.0f;
            const float weight = positive * positive;
            sum[x] += weight;
            sum[x + 256] += weight * disc.normal[0];
            sum[x + 512] += weight * disc.normal[1];
            sum[x + 768] += weight * disc.normal[2];
            sum[x + 1024] += weight * disc.light[0];
            sum[x + 1280] += weight * disc.light[1];
            sum[x + 1536] += weight * disc.light[2];
            sum[x + 1792] += weight * disc.openness;
            sum[x + 2048] += weight * disc.shine;
            sum[x + 2304] += weight * disc.blur;
            sum[x + 2560] += weight * disc.slack;
            sum[x + 3072] = sum[x + 3072] > fringe ? sum[x + 3072] : fringe;
        }
    }
""")
def blend_rows(
    disc: ScreenDisc, left: int, top: int, bottom: int, start: int, lanes: int, scratch: wp.array(dtype=float)
):
    """Add the disc, with the weight of its widened ellipse (physics 14.1), where it belongs to the front surface; note
    which pixels it may touch before the front surface at their middles: what these show is in doubt."""


@wp.func_native("""
    float* slot = scratch.data + s;
    const float near = slot[0], slack = slot[2816] / (slot[256] + 1e-30f);
    float around[9];
    bool open = false, edge = near > 0.0f ? !(slot[256] > 0.0f) : false;
    for (int k = 0; k < 9; ++k) {
        int column = x - 1 + k % 3, row = y - 1 + k / 3;
        column = column < 0 ? 0 : column < width ? column : width - 1;
        row = row < 0 ? 0 : row < height ? row : height - 1;
        around[k] = front.data[(((row >> 4) * tiles_x + (column >> 4)) << 8) + ((row & 15) << 4) + (column & 15)];
        open |= around[k] == 0.0f;
    }
    // One over the depth is linear on a plane: what lies below the line through the other side is another surface.
    for (int k = 0; k < 9; ++k) {
        const float line = near + (near - around[8 - k] < 0.0f ? near - around[8 - k] : 0.0f);
        edge |= near > 0.0f && around[k] < line - slack;
    }
    slot[3072] = near > 0.0f ? 1.0f : 0.0f;
    return edge || slot[3328] > 0.0f ? (open ? 2 : 1) : 0;
""")
def in_doubt(
    x: int,
    y: int,
    s: int,
    width: int,
    height: int,
    tiles_x: int,
    front: wp.array(dtype=float),
    scratch: wp.array(dtype=float),
) -> int:
    """Whether the front surface may cover the pixel only in part: it does not go on to all neighbours, or something
    nearer touches the pixel beside its middle. 2: and what is behind may be seen, for nothing is at the middle of this
    pixel or a neighbour; 1: it may not; 0: no doubt. Until that is looked at, it is covered or it is not."""


# Sixteen lines across the pixel, each with 32 places, every line's a little aside of the last one's. The lines sink by
# their distance, so that also a level edge meets as many of the 512 places as its share of the area.
_COVER = """
    const float shifts[16] = {1.0f, 17.0f, 9.0f, 25.0f, 5.0f, 21.0f, 13.0f, 29.0f,
                              3.0f, 19.0f, 11.0f, 27.0f, 7.0f, 23.0f, 15.0f, 31.0f};
    auto cover = [&](const auto& disc, float dx, float dy, const unsigned* taken, unsigned* bits) {
        // On a line the disc lies between the zeros of w² - u² - v², a quadratic a x² + 2 b x + c. Its discriminant is
        // p² + q² - r², in which nothing cancels, however thin the disc.
        const float sink = 0.0625f;
        const float ux = disc.ux + sink * disc.uy, vx = disc.vx + sink * disc.vy, wx = disc.wx + sink * disc.wy;
        const float per_a = 1.0f / (wx * wx - ux * ux - vx * vx);
        const float pp = disc.uy * wx - disc.wy * ux, qq = disc.vy * wx - disc.wy * vx;
        const float rr = disc.uy * vx - disc.vy * ux;
        const float slope = disc.wy * wx - disc.uy * ux - disc.vy * vx;
        const float top = dy - 0.5f - sink * (dx - 0.5f);
        unsigned any = 0;
#if defined(__clang__)
#pragma clang loop vectorize_width(16) interleave_count(1) unroll(disable)
#endif
        for (int k = 0; k < 16; ++k) {
            const float line = top + sink * (float)k;
            const float p = line * pp - ux, q = line * qq - vx, r = line * rr;
            const float d = p * p + q * q - r * r;
            const float half = -32.0f * per_a * wp::sqrt(d > 0.0f ? d : 0.0f);
            const float middle = 32.0f * (0.5f - dx - per_a * (wx + slope * line)) - 0.03125f * shifts[k];
            float from = middle - half + 1.0f, to = middle + half + 1.0f;
            from = from > 0.0f ? from : 0.0f;
            from = from < 32.0f ? from : 32.0f;
            to = to > 0.0f ? to : 0.0f;
            to = to < 32.0f ? to : 32.0f;
            const int first = (int)from, past = (int)to;
            const unsigned before = first > 31 ? 0xffffffffu : (1u << (first & 31)) - 1u;
            const unsigned until = past > 31 ? 0xffffffffu : (1u << (past & 31)) - 1u;
            bits[k] = d > 0.0f ? until & ~before & ~taken[k] : 0u;
            any |= bits[k];
        }
        return any;
    };
"""


@wp.func_native(
    _COVER
    + """
    // The discs that may touch the pixel, from the front to the back. If there are very many, only those that do, and
    // of the farther ones no more than what they cover.
    const int many = 32, most = 96;
    int found = 0, who[most];
    float here[most], inside[most];
    unsigned all[16] = {}, seen[16] = {}, taken[16] = {}, bits[16];
    for (int item = begin; item < end; ++item) {
        const auto& rect = rects.data[items.data[item]];
        if (x < rect[0] || y < rect[1] || x >= rect[2] || y >= rect[3]) continue;
        const auto& disc = discs.data[items.data[item]];
        const float dx = (float)x + 0.5f - disc.x, dy = (float)y + 0.5f - disc.y;
        float near = disc.nearness * (1.0f + disc.wx * dx + disc.wy * dy);
        near = near > disc.nearness - disc.slack ? near : disc.nearness - disc.slack;
        near = near < disc.nearness + disc.slack ? near : disc.nearness + disc.slack;
        const float f = disc.fx * dx + disc.fy * dy, g = disc.gy * dy, w = near / disc.nearness;
        const float in = w * w - f * f - g * g;
        if (in < -0.6f || (found >= many && !cover(disc, dx, dy, taken, bits))) continue;
        for (int j = 0; found >= many && j < 16; ++j) all[j] |= bits[j];
        if (found == most && near <= here[most - 1]) continue;
        int at = found < most ? found++ : most - 1;
        for (; at > 0 && here[at - 1] < near; --at) {
            here[at] = here[at - 1];
            inside[at] = inside[at - 1];
            who[at] = who[at - 1];
        }
        here[at] = near, inside[at] = in, who[at] = items.data[item];
    }

    // Surface after surface: near an outline even one and the same is as deep as several.
    float near = 1e30f, nearest = 0.0f, light[3] = {}, sum[10] = {}, kept[10] = {};
    int places = 0, largest = 0;
    for (int k = 0; k <= found; ++k) {
        if (k == found || here[k] < near - discs.data[who[k]].slack) {
            int more = 0;
            for (int j = 0; j < 16; ++j) more += wp::bit_count(seen[j] & ~taken[j]), taken[j] = seen[j];
            for (int c = 0; c < 3; ++c) light[c] += (float)more * sum[4 + c] / (sum[0] + 1e-30f);
            for (int c = 0; c < 10; ++c) kept[c] = more > largest ? sum[c] : kept[c], sum[c] = 0.0f;
            nearest = more > largest ? near : nearest;
            largest = more > largest ? more : largest;
            places += more;
            near = 1e30f;
            if (k == found || places == 512) break;
        }
        const auto& disc = discs.data[who[k]];
        const unsigned any = cover(disc, (float)x + 0.5f - disc.x, (float)y + 0.5f - disc.y, taken, bits);
        if (near == 1e30f && !any) continue;  // all of it is hidden: no surface begins with it
        near = near < 1e30f ? near : here[k];
        for (int j = 0; j < 16; ++j) seen[j] |= bits[j];
        const float weight = (inside[k] > 0.0f ? inside[k] * inside[k] : 0.0f) + (any ? 1e-3f : 0.0f);
        sum[0] += weight;
        for (int c = 0; c < 3; ++c) sum[1 + c] += weight * disc.normal[c], sum[4 + c] += weight * disc.light[c];
        sum[7] += weight * disc.openness;
        sum[8] += weight * disc.shine;
        sum[9] += weight * disc.blur;
    }
    // The light of all is mixed; what is mirrored is that of the largest part.
    float* slot = scratch.data + s;
    slot[0] = nearest;
    for (int c = 0; c < 10; ++c) slot[256 + 256 * c] = kept[c];
    for (int c = 0; c < 3; ++c) slot[1280 + 256 * c] = kept[0] * light[c] / (places > 0 ? (float)places : 1.0f);
    int covered = 0;
    for (int j = 0; j < 16; ++j) covered += wp::bit_count(all[j] | seen[j]);
    slot[3072] = open ? (float)covered / 512.0f : places > 0 ? 1.0f : 0.0f;
"""
)
def blend_edge(
    x: int,
    y: int,
    s: int,
    open: bool,
    begin: int,
    end: int,
    discs: wp.array(dtype=ScreenDisc),
    rects: wp.array(dtype=wp.vec4i),
    items: wp.array(dtype=int),
    scratch: wp.array(dtype=float),
):
    """Blend a pixel anew from all discs that touch it (physics 14.1), by the part of it that the discs of each surface
    cover together: disc by disc would not do, for the outline of a smooth thing is made of many discs seen edge on.
    Where it is not open to the background, what is left are seams between discs."""


@wp.func_native("""
    for (int i = first; i < last; ++i) numbers.data[i] = 0.0f;
""")
def clear(numbers: wp.array(dtype=float), first: int, last: int):
    """Set numbers first..last to zero."""


@wp.func_native("""
    const int count = stop - p;
    for (int c = 1; c < 14; ++c)
        for (int k = 0; k < count; ++k) scratch.data[s + 256 * c + k] = 0.0f;
    for (int k = 0; k < count; ++k) scratch.data[s + k] = front.data[p + k];
""")
def take_front(front: wp.array(dtype=float), p: int, stop: int, s: int, scratch: wp.array(dtype=float)):
    """Begin with pixels p..stop in the slots from s on: the nearest depth, and no sums yet."""
