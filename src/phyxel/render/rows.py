# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call"
"""The inner loops of the renderer: pixels in a row, in C++.

Loops over neighbouring words without branches: the compiler turns each into a few vector instructions. Warp's own
indexing (with a stride known only at run time) would leave them scalar, ten times slower.

The scratch of a tile is eleven times 256 numbers: nearness, weight, normal (3), light (3), openness, coverage, doubt.
"""

from __future__ import annotations

import warp as wp

from phyxel.device import KERNEL_OPTIONS
from phyxel.render.discs import Disc
from phyxel.render.shade import Studio
from phyxel.render.view import View

ROW_OPTIONS = {
    **KERNEL_OPTIONS,
    "cpu_compiler_flags": f"{KERNEL_OPTIONS['cpu_compiler_flags']} -mprefer-vector-width=512",
}
"""Options of modules with such loops. A row of a tile is just one 512-bit word where the processor has such; the
compiler would rather take two halves."""
SCRATCH = 11 * 256
"""Numbers in the scratch of a tile."""


@wp.func_native("""
    for (int y = top; y < bottom; ++y) {
        const float dx = (float)left + 0.5f - disc.x, dy = (float)y + 0.5f - disc.y;
        const float u0 = disc.ux * dx + disc.uy * dy, v0 = disc.vx * dx + disc.vy * dy;
        const float w0 = 1.0f + disc.wx * dx + disc.wy * dy;
        const float least = disc.nearness - disc.slack, most = disc.nearness + disc.slack;
        float* near = scratch.data + start + (y & 15) * 16;
        for (int x = 0; x < 16; ++x) {
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
def raise_rows(disc: Disc, left: int, top: int, bottom: int, start: int, scratch: wp.array(dtype=float)):
    """Nearest depth of the discs, in the rows top..bottom of the tile that begins at column left."""


@wp.func_native("""
    for (int y = top; y < bottom; ++y) {
        const float dx = (float)left + 0.5f - disc.x, dy = (float)y + 0.5f - disc.y;
        const float u0 = disc.ux * dx + disc.uy * dy, v0 = disc.vx * dx + disc.vy * dy;
        const float w0 = 1.0f + disc.wx * dx + disc.wy * dy;
        const float least = disc.nearness - disc.slack, most = disc.nearness + disc.slack;
        const float* __restrict__ near = scratch.data + start + (y & 15) * 16;
        float* __restrict__ sum = scratch.data + start + 256 + (y & 15) * 16;
        for (int x = 0; x < 16; ++x) {
            const float u = u0 + disc.ux * (float)x, v = v0 + disc.vx * (float)x, w = w0 + disc.wx * (float)x;
            const float inside = w * w - u * u - v * v;
            float here = disc.nearness * w;
            here = here > least ? here : least;
            here = here < most ? here : most;
            const float before = here - near[x];
            const float front = before >= -disc.slack ? inside : 0.0f;
            const float positive = front > 0.0f ? front : 0.0f;
            const float fringe = inside > disc.outer ? before - disc.slack : 0.0f;
            const float weight = positive * positive;
            sum[x] += weight;
            sum[x + 256] += weight * disc.normal[0];
            sum[x + 512] += weight * disc.normal[1];
            sum[x + 768] += weight * disc.normal[2];
            sum[x + 1024] += weight * disc.light[0];
            sum[x + 1280] += weight * disc.light[1];
            sum[x + 1536] += weight * disc.light[2];
            sum[x + 1792] += weight * disc.openness;
            sum[x + 2048] = positive > disc.inner ? 1.0f : sum[x + 2048];
            sum[x + 2304] = sum[x + 2304] > fringe ? sum[x + 2304] : fringe;
        }
    }
""")
def blend_rows(disc: Disc, left: int, top: int, bottom: int, start: int, scratch: wp.array(dtype=float)):
    """Add the disc where it is in front; note which pixels it surely covers, and which have its fringe before all else
    and so are in doubt."""


@wp.func_native("""
    float* tile = scratch.data + start;
    for (int next = 0; next < 256;) {
        int found = 0, at[16];
        for (; next < 256 && found < 16; ++next)
            if (tile[next + 2560] > 0.0f || (tile[next] > 0.0f && tile[next + 2304] < 1.0f)) at[found++] = next;
        if (found == 0) break;
        int column[16], row[16];
        for (int k = 0; k < 16; ++k) {
            at[k] = at[k < found ? k : 0];
            column[k] = left + (at[k] & 15), row[k] = top + (at[k] >> 4);
        }
        float near[16] = {}, sum[8][16] = {}, most[16] = {};
        for (int pass = 0; pass < 2; ++pass) {
            for (int item = begin; item < end; ++item) {
                const auto& disc = discs.data[items.data[item]];
                const auto& rect = rects.data[items.data[item]];
                const int x0 = rect[0], y0 = rect[1], x1 = rect[2], y1 = rect[3];
                float u[16], v[16], w[16], inside[16];
                int touched = 0, touches[16];
                for (int k = 0; k < 16; ++k) {
                    const float dx = (float)column[k] + 0.5f - disc.x, dy = (float)row[k] + 0.5f - disc.y;
                    u[k] = disc.ux * dx + disc.uy * dy;
                    v[k] = disc.vx * dx + disc.vy * dy;
                    w[k] = 1.0f + disc.wx * dx + disc.wy * dy;
                    inside[k] = w[k] * w[k] - u[k] * u[k] - v[k] * v[k];
                    touches[k] = (column[k] >= x0) & (column[k] < x1) & (row[k] >= y0) & (row[k] < y1)
                        & (inside[k] > disc.outer);
                    touched |= touches[k];
                }
                if (!touched) continue;
                float here[16], covered[16];
                for (int k = 0; k < 16; ++k) {
                    here[k] = disc.nearness * w[k];
                    here[k] = here[k] > disc.nearness - disc.slack ? here[k] : disc.nearness - disc.slack;
                    here[k] = here[k] < disc.nearness + disc.slack ? here[k] : disc.nearness + disc.slack;
                    // Half plus the way to the edge in pixels, (1 - r) / |∇r| with r² = (u² + v²) / w².
                    const float per = 1.0f / w[k], rr = (u[k] * u[k] + v[k] * v[k]) * per * per, r = wp::sqrt(rr);
                    const float gx = (u[k] * disc.ux + v[k] * disc.vx) * per * per - rr * per * disc.wx;
                    const float gy = (u[k] * disc.uy + v[k] * disc.vy) * per * per - rr * per * disc.wy;
                    float part = 0.5f + (1.0f - r) * r / (wp::sqrt(gx * gx + gy * gy) + 1e-12f);
                    part = part > 0.0f ? part : 0.0f;
                    part = part < 1.0f && inside[k] < disc.inner ? part : 1.0f;
                    covered[k] = touches[k] ? part : 0.0f;
                }
                for (int k = 0; pass == 0 && k < 16; ++k) {
                    const float seen = covered[k] > 0.0f ? here[k] : 0.0f;
                    near[k] = near[k] > seen ? near[k] : seen;
                }
                for (int k = 0; pass == 1 && k < 16; ++k) {
                    const float part = here[k] >= near[k] - disc.slack ? covered[k] : 0.0f;
                    float weight = inside[k] > 0.02f ? inside[k] : 0.02f;
                    weight *= weight * part;
                    sum[0][k] += weight;
                    sum[1][k] += weight * disc.normal[0];
                    sum[2][k] += weight * disc.normal[1];
                    sum[3][k] += weight * disc.normal[2];
                    sum[4][k] += weight * disc.light[0];
                    sum[5][k] += weight * disc.light[1];
                    sum[6][k] += weight * disc.light[2];
                    sum[7][k] += weight * disc.openness;
                    most[k] = most[k] > part ? most[k] : part;
                }
            }
        }
        for (int k = 0; k < found; ++k) {
            tile[at[k]] = near[k];
            for (int c = 0; c < 8; ++c) tile[at[k] + 256 * (c + 1)] = sum[c][k];
            tile[at[k] + 2304] = most[k];
        }
    }
""")
def blend_edges(
    left: int,
    top: int,
    begin: int,
    end: int,
    discs: wp.array(dtype=Disc),
    rects: wp.array(dtype=wp.vec4i),
    items: wp.array(dtype=int),
    start: int,
    scratch: wp.array(dtype=float),
):
    """Blend the pixels of a tile that are at edges anew, soft edges included, sixteen of them at a time: they are few,
    but each asks all discs of the tile."""


@wp.func_native("""
    for (int i = first; i < last; ++i) numbers.data[i] = 0.0f;
""")
def clear(numbers: wp.array(dtype=float), first: int, last: int):
    """Set numbers first..last to zero."""


@wp.func_native("""
    const float drop = view.eye[1] - level;
    const float up = (view.center[1] - (float)y - 0.5f) * view.per_focal;
    for (int k = 0; k < lanes; ++k) {
        const float* __restrict__ from = scratch.data + s + k;
        float* __restrict__ to = colors.data + (p >> 8) * 768 + (p & 255) + k;
        const float right = ((float)(x + k) + 0.5f - view.center[0]) * view.per_focal;
        const float rx = view.forward[0] + right * view.right[0] + up * view.up[0];
        const float ry = view.forward[1] + right * view.right[1] + up * view.up[1];
        const float rz = view.forward[2] + right * view.right[2] + up * view.up[2];
        const float r = -1.0f / wp::sqrt(rx * rx + ry * ry + rz * rz);
        const float ex = r * rx, ey = r * ry, ez = r * rz;

        float nx = from[512], ny = from[768], nz = from[1024];
        const float n = 1.0f / wp::sqrt(nx * nx + ny * ny + nz * nz + 1e-30f);
        nx *= n, ny *= n, nz *= n;
        const float share = 1.0f / (from[256] + 1e-30f);
        const float openness = share * from[2048];

        // The key light's highlight: (1 - (1 - c) gloss / 8)^8 is nearly Blinn and Phong's c^gloss.
        const float hx = studio.to_light[0] + ex, hy = studio.to_light[1] + ey, hz = studio.to_light[2] + ez;
        const float h = 1.0f / wp::sqrt(hx * hx + hy * hy + hz * hz + 1e-30f);
        float lobe = 1.0f - (1.0f - h * (nx * hx + ny * hy + nz * hz)) * studio.gloss * 0.125f;
        lobe = lobe > 0.0f ? lobe : 0.0f;
        lobe *= lobe; lobe *= lobe; lobe *= lobe;
        const float shine = studio.specular * lobe * openness;

        // The studio mirrored, most at grazing angles (Schlick's Fresnel term): sky, and a soft box at the ceiling.
        float facing = nx * ex + ny * ey + nz * ez;
        facing = facing > 0.0f ? facing : 0.0f;
        const float graze = 1.0f - facing, graze2 = graze * graze;
        const float mirrored = 2.0f * facing * ny - ey;
        float box = (mirrored - 0.2f) * 1.43f;
        box = box > 0.0f ? box : 0.0f;
        box = box < 1.0f ? box : 1.0f;
        const float rim = (0.04f + 0.96f * graze2 * graze2 * graze) * studio.rim * (0.4f + 0.6f * openness);
        const float sky = rim * (0.5f + 0.5f * mirrored), key = shine + rim * box * box * (3.0f - 2.0f * box);

        // Film-like rolling off of what is too bright: straight up to 0.6, then bending, level at 1.
        for (int c = 0; c < 3; ++c) {
            const float light = share * from[1280 + 256 * c] + sky * studio.sky[c] + key * studio.key[c];
            float over = light - 0.6f;
            over = over > 0.0f ? over : 0.0f;
            over = over < 0.8f ? over : 0.8f;
            to[256 * c] = (light < 0.6f ? light : 0.6f) + over - 0.625f * over * over;
        }

        // The ground hides what is below it, with a soft step about a pixel wide.
        float above = 0.5f + (from[0] * drop + ry) * view.focal;
        above = above > 0.0f ? above : 0.0f;
        above = above < 1.0f ? above : 1.0f;
        above = ry > 0.0f || drop < 0.0f ? 1.0f : above;
        coverage.data[p + k] = from[2304] * above;
        nearness.data[p + k] = from[0];
    }
""")
def light_row(
    x: int,
    y: int,
    p: int,
    s: int,
    lanes: int,
    view: View,
    studio: Studio,
    level: float,
    scratch: wp.array(dtype=float),
    nearness: wp.array(dtype=float),
    coverage: wp.array(dtype=float),
    colors: wp.array(dtype=float),
):
    """Light pixels p, p + 1, ... from their slots s, s + 1, ...: the mean light of the surfels' bodies, and what a
    surface with their mean normal mirrors. Only pixels that are covered get a color that means something."""
