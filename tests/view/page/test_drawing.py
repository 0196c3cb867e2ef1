"""The picture of the page in a real browser: what is drawn where, against closed forms of what should be seen."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from phyxel.view.messages import Blob, DrawnThing, Snapshot
from phyxel.view.page_files import content_type, page_files
from tests.view.page.stand_in import ball
from tests.view.records import RECORD

WIDTH, HEIGHT, FOV = 320, 200, 32.0
RED, GREEN, BLUE = (220, 25, 25), (25, 170, 40), (30, 50, 220)
RADIUS = 0.1
SURFELS = 3000
TO_LIGHT = np.array([-0.55, 1.0, 0.6])

SCRIPT = (
    f"const WIDTH = {WIDTH}, HEIGHT = {HEIGHT};"
    + """
import { Orbit } from "phyxel/camera.js";
import { decode } from "phyxel/decode.js";
import { Stage } from "phyxel/draw.js";

const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
const kept = new Map();

/** A stage of its own; `plain` as where floats cannot be blended. */
function makeStage(plain) {
  const canvas = document.createElement("canvas");
  document.body.append(canvas);
  if (plain) {
    const get = canvas.getContext.bind(canvas);
    canvas.getContext = (...asked) => Object.assign(get(...asked), { getExtension: () => null });
  }
  const stage = new Stage(canvas);
  stage.resize(WIDTH, HEIGHT, 1);
  return stage;
}

const stages = {};
window.draw = (message, camera, marks, plain) => {
  const stage = (stages[plain] ??= makeStage(plain)), gl = stage.gl;
  stage.show(decode(bytes(message), new Map()));
  stage.fineness = 1;
  stage.draw(new Orbit(camera), marks);
  return pixels(gl);
};
function pixels(gl) {
  const data = new Uint8Array(4 * gl.drawingBufferWidth * gl.drawingBufferHeight);
  gl.readPixels(0, 0, gl.drawingBufferWidth, gl.drawingBufferHeight, gl.RGBA, gl.UNSIGNED_BYTE, data);
  let text = "";
  for (let k = 0; k < data.length; k += 8192) text += String.fromCharCode(...data.subarray(k, k + 8192));
  return btoa(text);
}
window.read = (message) => {
  const frame = decode(bytes(message), kept);
  const parts = frame.parts.map((part) => ({
    ...part, blobs: Object.fromEntries(Object.entries(part.blobs).map(([name, data]) => [name, Array.from(data)])),
  }));
  return { about: frame.about, parts, kept: [...kept.keys()] };
};
window.loseAndRestore = async () => {
  const { gl, canvas } = stages[false], extension = gl.getExtension("WEBGL_lose_context");
  const told = (what) => new Promise((resolve) => canvas.addEventListener(what, resolve, { once: true }));
  let next = told("webglcontextlost");
  extension.loseContext();
  await next;
  await new Promise((resolve) => setTimeout(resolve, 20));  // it can be restored once all have heard
  next = told("webglcontextrestored");
  extension.restoreContext();
  await next;
  stages[false].fineness = 1;
  stages[false].draw(stages[false].last.camera, {});
  return pixels(gl);
};
window.Orbit = Orbit;
window.ready = true;
"""
)


@pytest.fixture(scope="module")
def page(browser: Any) -> Iterator[Any]:
    files = page_files()
    imports = {f"phyxel/{name}": f"/page/{name}" for name in files if name.endswith(".js")}
    html = (
        f'<script type="importmap">{json.dumps({"imports": imports})}</script><script type="module">{SCRIPT}</script>'
    )

    def serve(route: Any) -> None:
        name = route.request.url.rpartition("/")[2]
        if name in files:
            route.fulfill(body=files[name], content_type=content_type(name))
        else:
            route.fulfill(body=html, content_type="text/html")

    page = browser.new_page(viewport={"width": 2 * WIDTH, "height": 2 * HEIGHT})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.route("**/*", serve)
    page.goto("http://phyxel.test/")
    page.wait_for_function("window.ready")
    yield page
    page.close()
    assert errors == []


def folded(normals: NDArray[np.float64]) -> NDArray[np.int16]:
    """Unit vectors on the octahedron."""
    n = normals / np.abs(normals).sum(axis=1, keepdims=True)
    sign = np.where(n[:, :2] < 0, -1, 1)
    lower = (1 - np.abs(n[:, 1::-1])) * sign
    return np.round(32767 * np.where(n[:, 2:] < 0, lower, n[:, :2])).astype(np.int16)


def part(points: Any, normals: Any, color: Any, kind: str = "surfels", values: Any = 0.0, **about: Any) -> DrawnThing:
    """Round discs of radius `finest`, or vertices."""
    points = np.asarray(points, float)
    lower, upper = points.min(axis=0), points.max(axis=0)
    rows = np.zeros(len(points), RECORD)
    rows["x"] = np.round(65535 * (points - lower) / np.maximum(upper - lower, 1e-9))
    rows["value"] = np.round(65535 * np.broadcast_to(values, len(points)))
    rows["normal"], rows["axes"] = folded(np.asarray(normals, float)), 255
    told = {"count": len(points), "lower": lower.tolist(), "upper": upper.tolist(), "look": "matte", "finest": 0.01}
    blobs = {"records": Blob(rows.tobytes()), "colors": Blob(bytes([*color, 255]) * len(points))}
    return DrawnThing(f"{kind} {color}", kind, {**told, "sheet": False, "pose": None, "valued": False, **about}, blobs)


def sphere(center: Any, color: Any = RED) -> DrawnThing:
    """Discs that cover it: each a little larger than its share of the area, π r² = 2 · 4π R² / n."""
    directions = ball(SURFELS)
    return part(center + RADIUS * directions, directions, color, finest=RADIUS * math.sqrt(8 / SURFELS))


def square(z: float, color: Any, **about: Any) -> DrawnThing:
    """A mesh of two triangles, 0.2 m wide, that faces +z."""
    corners = [(x, y, z) for y in (-0.1, 0.1) for x in (-0.1, 0.1)]
    made = part(corners, [(0, 0, 1)] * 4, color, "mesh", **about)
    faces = np.array([0, 1, 3, 0, 3, 2], "<u4").tobytes()
    return DrawnThing(made.name, "mesh", made.about, {**made.blobs, "faces": Blob(faces)})


def splats(places: Any, colors: Any, sigma: float = 0.02) -> DrawnThing:
    rows = np.zeros(len(places), [("x", "<f4", 3), ("covariance", "<f2", 6), ("color", "u1", 4)])
    reach = np.abs(places).max() + 3 * sigma
    rows["x"], rows["covariance"] = np.add(places, reach), [1, 0, 0, 1, 0, 1]
    rows["color"] = [(*color, 250) for color in colors]
    box = {"lower": [-reach] * 3, "upper": [reach] * 3, "count": len(places), "unit": sigma, "pose": None}
    return DrawnThing("splats", "splats", box, {"records": Blob(rows.tobytes())})


def message(*parts: DrawnThing, ground: float | None = None, **about: Any) -> str:
    told = {"frame": 1, "time": 0.0, "ground": ground, "size": 2 * RADIUS, "legend": None, **about}
    return base64.b64encode(Snapshot(told, parts).message(set(), {})).decode()


def drawn(page: Any, frame: str, eye: Any, target: Any = (0, 0, 0), plain: bool = False) -> NDArray[np.float64]:
    """What is seen, (height, width, 3), rows from the top, display values in 0..1."""
    camera = {"eye": [float(x) for x in eye], "target": [float(x) for x in target], "fov": FOV}
    return pixels(page.evaluate("(given) => draw(...given)", [frame, camera, {}, plain]))


def pixels(text: str) -> NDArray[np.float64]:
    rows = np.frombuffer(base64.b64decode(text), np.uint8).reshape(HEIGHT, WIDTH, 4)
    return rows[::-1, :, :3] / 255.0


def is_color(picture: NDArray[np.float64], color: Any) -> NDArray[np.bool_]:
    """Where the strongest part of a color leads clearly; the studio is grey."""
    lead = int(np.argmax(color))
    return picture[..., lead] > 0.1 + np.delete(picture, lead, axis=-1).max(axis=-1)


def from_middle() -> NDArray[np.float64]:
    """Distance of pixels' middles from that of the picture."""
    y, x = np.mgrid[:HEIGHT, :WIDTH] + 0.5
    return np.hypot(x - WIDTH / 2, y - HEIGHT / 2)


def test_decode_gives_back_what_was_encoded(page: Any) -> None:
    """Numbers and bytes are those of the snapshot; what has a key is kept as long as it is named."""
    body, known = part(ball(40), ball(40), RED), set[str]()
    painted = DrawnThing(
        body.name, body.kind, body.about, {**body.blobs, "colors": Blob(body.blobs["colors"].data, "red")}
    )
    texts = [
        base64.b64encode(Snapshot({"frame": frame, "legend": None}, (one,)).message(known, {"heard": 3})).decode()
        for frame, one in enumerate((painted, painted, body))
    ]
    assert len(texts[1]) < len(texts[0])
    for frame, text in enumerate(texts):
        found = page.evaluate("(text) => read(text)", text)
        assert found["about"] == {"frame": frame, "legend": None, "heard": 3}
        assert found["kept"] == ([] if frame == 2 else ["red"])
        (one,) = found["parts"]
        assert (one["name"], one["kind"], one["about"]) == (body.name, "surfels", body.about)
        assert {name: bytes(data) for name, data in one["blobs"].items()} == {
            name: blob.data for name, blob in body.blobs.items()
        }


@pytest.mark.parametrize("plain", [False, True], ids=["blended", "nearest wins"])
@pytest.mark.parametrize("distance", [0.13, 0.5, 4.0])
def test_a_sphere_is_covered_up_to_its_outline(page: Any, distance: float, plain: bool) -> None:
    """Seen from distance d a sphere is a disc of focal · R / √(d² - R²) pixels: no hole within, nothing beyond.

    Its discs are tangents: they reach beyond it by √(R² + r²) - R, 1.3 thousandths of R, and are drawn an eighth larger
    and no narrower than 1.7 pixels; edges are smoothed over one more."""
    focal = 0.5 * HEIGHT / math.tan(math.radians(FOV) / 2)
    outline = focal * RADIUS / math.sqrt(distance**2 - RADIUS**2)
    way = np.array([0.48, 0.6, 0.64])
    red = is_color(drawn(page, message(sphere((0, 0, 0))), distance * way, plain=plain), RED)
    away = from_middle()
    assert red[away < outline - 1.0].all()
    assert not red[away > 1.003 * outline + 2.0].any()


def test_nothing_vanishes_far_away(page: Any) -> None:
    """A sphere a third of a pixel wide is still a dot."""
    red = is_color(drawn(page, message(sphere((0, 0, 0))), (0, 0, 400)), RED)
    assert 1 <= red.sum() <= 9


def test_shadow_lies_where_the_light_says(page: Any) -> None:
    """A sphere over the ground darkens the place where the light's ray through its middle meets it, and none far."""
    center = np.array([0.0, 0.25, 0.0])
    shadow = center - TO_LIGHT * (center[1] / TO_LIGHT[1])
    frames = [message(sphere(center), ground=0.0), message(ground=0.0)]
    pictures = [drawn(page, frame, shadow + np.array([0.0, 1.0, 0.3]), shadow) for frame in frames]
    ratio = pictures[0].mean(axis=-1) / pictures[1].mean(axis=-1)
    assert ratio[HEIGHT // 2, WIDTH // 2] < 0.85
    assert ratio[HEIGHT // 2, 5] == pytest.approx(1.0, abs=0.01)


def test_the_nearer_of_two_bodies_is_seen(page: Any) -> None:
    frame = message(sphere((0, 0, 0.15), RED), sphere((0, 0, -0.15), BLUE))
    for z, color in ((0.8, RED), (-0.8, BLUE)):
        middle = drawn(page, frame, (0, 0, z))[HEIGHT // 2, WIDTH // 2]
        assert is_color(middle, color)


def test_meshes_are_filled_and_splats_are_sorted_among_them(page: Any) -> None:
    """A square of 0.2 m at 1 m is focal/5 pixels wide. Of splats on one ray the nearest is seen, whatever their order,
    but not through a mesh."""
    half = 0.1 * 0.5 * HEIGHT / math.tan(math.radians(FOV) / 2)
    y, x = np.mgrid[:HEIGHT, :WIDTH] + 0.5
    inside = np.maximum(abs(x - WIDTH / 2), abs(y - HEIGHT / 2))
    green = is_color(drawn(page, message(square(0.0, GREEN)), (0, 0, 1)), GREEN)
    assert green[inside < half - 1].all()
    assert not green[inside > half + 1].any()
    row = splats([(0, 0, 0.1), (0, 0, 0.3), (0, 0, 0.2), (0, 0, -0.2)], [GREEN, BLUE, GREEN, RED])
    for z, color in ((1, BLUE), (-1, RED)):
        picture = drawn(page, message(row), (0, 0, z))
        assert is_color(picture[HEIGHT // 2, WIDTH // 2], color)
    hidden = drawn(page, message(row, square(0.35, RED)), (0, 0, 1))
    assert is_color(hidden[HEIGHT // 2, WIDTH // 2], RED)


def test_values_take_their_colors_from_the_legend(page: Any) -> None:
    """A painted section shows them as they are."""
    ramp = [[255 - 4 * k, 40, 4 * k] for k in range(64)]
    legend = {"title": "", "unit": "", "low": 0, "high": 1, "colors": ramp, "ticks": []}
    section = square(0.0, GREEN, values=[0, 1, 0, 1], valued=True, look="painted")
    picture = drawn(page, message(section, legend=legend), (0, 0, 1))
    for aside, share in ((-20, 0.5 - 20 / 69.74), (0, 0.5), (20, 0.5 + 20 / 69.74)):
        found = picture[HEIGHT // 2, WIDTH // 2 + aside]
        assert found == pytest.approx(np.array([255 - 252 * share, 40, 252 * share]) / 255, abs=0.03)


def test_a_lost_context_comes_back(page: Any) -> None:
    frame = message(sphere((0, 0, 0)), ground=-RADIUS)
    before = drawn(page, frame, (0.2, 0.2, 0.6))
    after = pixels(page.evaluate("() => loseAndRestore()"))
    assert abs(after - before).max() <= 1.5 / 255


def test_camera_keeps_its_promises(page: Any) -> None:
    """Rays go through what they are asked for, zooming keeps what is under the pointer, and the poles do not flip."""
    found = page.evaluate("""() => {
      const camera = new Orbit({ eye: [1, 0.5, 2], target: [0.1, 0.2, 0], fov: 32 });
      const { ray, way } = camera.ray(250, 30, 320, 200);
      const point = ray.map((x, k) => x + 1.7 * way[k]);
      const seen = camera.project(point, 320, 200);
      camera.zoom(3, point);
      const zoomed = camera.project(point, 320, 200);
      for (let k = 0; k < 40; k++) camera.orbit(0, 60);
      const above = { up: camera.up, eye: camera.eye[1] > camera.target[1] };
      const pivot = camera.project(point, 320, 200);
      camera.orbitAbout(point, 40, -200);
      return { seen, zoomed, above, pivot, turned: camera.project(point, 320, 200) };
    }""")
    assert found["seen"][:2] == pytest.approx([250, 30])
    assert found["zoomed"][:2] == pytest.approx([250, 30])
    assert found["above"]["eye"] and found["above"]["up"][1] > 0
    assert found["turned"] == pytest.approx(found["pivot"])
