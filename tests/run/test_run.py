"""Runs: what lies in OUT, what is refused, and how a run survives kill -9, Ctrl-C and blow-ups."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import phyxel as px
from phyxel.errors import BlowUpError, CheckpointError
from phyxel.models.phyxel.model import PhyxelModel
from phyxel.run import Run

PHYXEL = str(Path(sys.executable).with_name("phyxel"))
SIMPLE = """
seconds = 0.1
fps = 50
[[body]]
name = "box"
shape = "box"
nodes = 64
points = 300
at = [0, 0.3, 0]
place = "center"
material = { young = 1.0e5, poisson = 0.3, density = 1000.0 }
[[collider]]
kind = "ground"
[output]
video = false
checkpoint_every = 2
"""
EVENTFUL = """
seconds = 1.5
fps = 60
[[body]]
name = "tom"
shape = "box"
nodes = 125
points = 500
at = [0, 0.5, 0]
place = "center"
material = { young = 1.0e5, poisson = 0.4, density = 1000.0, damping = 2.0e-3 }
hold = [
    { name = "left", upper = [-0.15, inf, inf] },
    { name = "right", lower = [0.15, -inf, -inf], to = [0.15, 0.1, 0], over = 0.4 },
]
[[body]]
shape = "sphere"
nodes = 80
points = 300
at = [2, 0.8, 0]
place = "center"
velocity = [0, 0, 1]
spin = [1, 2, 3]
material = { preset = "gelatin", drag = 0.1 }
[[collider]]
kind = "ground"
restitution = 0.3
[[event]]
at = 0.35
body = "tom"
release = "right"
material = { young = 4.0e4 }
[[event]]
at = 0.611
body = "sphere"
force = [20, 0, 0]
hold = { name = "top", lower = [-inf, 0.9, -inf], to = [0, 0.05, 0], over = 0.2 }
[output]
video = false
checkpoint_every = 7
"""
FRAMES = 91
"""of the eventful scene"""


def quiet(_row) -> None:
    pass


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def play(text: str, out: Path, resume: bool = False, **changes) -> list[dict]:
    """Run a scene in this process and return what was reported."""
    rows: list[dict] = []
    Run(px.Scene.parse(text, folder=out.parent).changed(**changes), out).play(resume, rows.append)
    return rows


def log_of(out: Path) -> list[dict]:
    return [json.loads(line) for line in (out / "run.jsonl").read_text().splitlines()]


def files_in(folder: Path) -> dict[str, bytes]:
    """Every file under a folder, by its path in it."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def frames_in(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((out / "frames").glob("*.ply"))}


def begin(*arguments: str | Path, cwd: Path) -> subprocess.Popen:
    """`phyxel ...` as a process of its own that heeds Ctrl-C, however the tests were started."""
    return subprocess.Popen(
        [PHYXEL, *map(str, arguments)],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_for(path: Path, process: subprocess.Popen) -> None:
    """Until a file is there; fails if the process ends before."""
    end = time.monotonic() + 120
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, f"{path} never came"
        time.sleep(0.002)


# The folder


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """The folder of a simple run, 6 frames; not to be changed."""
    out = tmp_path_factory.mktemp("finished") / "out"
    play(SIMPLE, out)
    return out


def test_everything_is_where_it_should_be(finished):
    names = {name for name in files_in(finished) if not name.startswith("checkpoints/")}
    assert names == {"run.jsonl", "scene.toml", *(f"frames/{k:04d}.ply" for k in range(6))}
    assert any((finished / "checkpoints").glob("*.npz"))
    assert (finished / "scene.toml").read_text() == SIMPLE


def test_nothing_half_written_is_left(finished):
    assert not [name for name in files_in(finished) if Path(name).name.startswith(".") or "tmp" in name]


def test_the_log_has_a_line_a_frame_with_everything(finished):
    rows = log_of(finished)
    assert [row["frame"] for row in rows] == list(range(6))
    assert [row["time"] for row in rows] == pytest.approx(np.arange(6) / 50, abs=1e-8)
    for row in rows:
        assert set(row) >= {"time", "kinetic", "elastic", "potential", "momentum", "volume", "surfels", "milliseconds"}
        assert row["surfels"] == 300
        assert len(row["momentum"]) == 3
        assert row["milliseconds"] and all(ms >= 0 for ms in row["milliseconds"].values())
        assert {"physics", "surface"} <= set(row["milliseconds"])
    assert rows[1]["momentum"][1] == pytest.approx(-125 * 9.81 / 50, rel=1e-4)
    assert rows[0]["potential"] == pytest.approx(125 * 9.81 * 0.3, rel=1e-4)
    assert rows[1]["kinetic"] + rows[1]["potential"] == pytest.approx(rows[0]["potential"], rel=1e-4)
    assert rows[0]["volume"] == pytest.approx(0.125, rel=1e-3)


def test_frames_are_what_the_world_does(finished):
    world = px.Scene.parse(SIMPLE).world()
    for frame in world.play(seconds=0.1, fps=50):
        saved = px.load(finished / "frames" / f"{frame.index:04d}.ply")
        assert np.array_equal(saved.positions.astype(np.float32), np.float32(world.bodies[0].surface.positions))


def test_what_is_reported_is_what_is_logged(tmp_path):
    assert play(SIMPLE, tmp_path / "out", seconds=0.04) == log_of(tmp_path / "out")


def test_a_small_body_has_its_momentum_in_the_log(tmp_path):
    tiny = "gravity = [0, 0, 0]\n" + SIMPLE.replace("1.0e5", "0.1")
    tiny = tiny.replace("at = [0, 0.3, 0]", "at = [0, 1, 0]\nsize = 1.0e-6\nvelocity = [1.0e-3, 0, 0]")
    for row in play(tiny, tmp_path / "out", seconds=0.02):
        assert row["momentum"][0] == pytest.approx(1e-18, rel=1e-3, abs=0)
        assert row["kinetic"] == pytest.approx(0.5e-21, rel=1e-3, abs=0)


@pytest.mark.slow
def test_pictures_make_a_video_with_every_frame(tmp_path):
    import av

    text = SIMPLE.replace("video = false", "video = true\nwidth = 64\nheight = 48")
    play(text, tmp_path / "out")
    assert len(list((tmp_path / "out" / "frames").glob("*.png"))) == 6
    with av.open(str(tmp_path / "out" / "preview.mp4")) as video:
        pictures = [frame.to_ndarray(format="rgb24") for frame in video.decode(video=0)]
    assert len(pictures) == 6 and pictures[0].shape == (48, 64, 3)
    assert np.ptp(pictures[0]) > 30, "something is to be seen"
    assert not [name for name in files_in(tmp_path / "out") if Path(name).name.startswith(".")]


def test_a_mesh_goes_out_as_it_came_in(tmp_path):
    """The deformed mesh has the file's own vertices and faces, also where points were added for the picture."""
    corners = [(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)]
    quads = [(1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5), (2, 6, 8, 4)]
    lines = ["v {} {} {}".format(*x) for x in corners] + ["f {} {} {} {}".format(*q) for q in quads]
    write(tmp_path / "cube.obj", "\n".join(lines) + "\n")
    text = (
        SIMPLE.replace('shape = "box"', 'file = "cube.obj"')
        .replace("points = 300\n", "")
        .replace('place = "center"', "")
    )
    play(text.replace("[output]", '[output]\nmesh = "obj"'), tmp_path / "out", seconds=0.04)
    (first, *_, last) = sorted((tmp_path / "out" / "frames").glob("*.obj"))
    before, after = px.load(first), px.load(last)
    assert len(before) == 8 and len(before.faces) == 12
    assert np.array_equal(before.faces, after.faces)
    assert after.positions[:, 1].mean() - before.positions[:, 1].mean() == pytest.approx(
        -0.5 * 9.81 * 0.04**2, rel=1e-3
    )


EVERY_FORMAT = SIMPLE.replace("[output]", '[output]\npoints = ["ply", "vtk", "splat", "usd"]\nmesh = "usd"')


def test_every_format_is_written_and_survives_a_stop(tmp_path):
    """A run that was stopped and gone on with has the same files as one that was not, bit for bit."""
    usd = pytest.importorskip("pxr.Usd", reason="needs usd-core")
    straight, out = tmp_path / "straight", tmp_path / "out"
    play(EVERY_FORMAT, straight)
    stopped_after(out, 3, EVERY_FORMAT)
    assert not (out / "scene.usdc").exists() and not (out / "points.pvd").exists()
    play(EVERY_FORMAT, out, resume=True)
    one, other = ({k: v for k, v in files_in(f).items() if "run.jsonl" not in k} for f in (straight, out))
    kept = {name: content for name, content in one.items() if not name.startswith("checkpoints")}
    assert sorted(one) == sorted(other)
    assert [name for name, content in kept.items() if other[name] != content] == []
    names = {f"frames/{k:04d}{ending}" for k in range(6) for ending in (".ply", ".vtp", "-splats.ply", ".usdc")}
    assert set(kept) == names | {"scene.toml", "scene.usdc", "open_in_blender.py", "points.pvd"}
    stage = usd.Stage.Open(str(out / "scene.usdc"))
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode(), stage.GetTimeCodesPerSecond()) == (0, 5, 50)
    for kind in ("points", "mesh"):
        prim = stage.GetPrimAtPath(f"/World/box/box_{kind}")
        assert prim.GetAttribute("points").GetTimeSamples() == [0, 1, 2, 3, 4, 5]
    saved = px.load(out / "frames" / "0005.ply").positions
    shown = stage.GetPrimAtPath("/World/box/box_points").GetAttribute("points").Get(5)
    assert np.array_equal(np.array(shown), saved.astype(np.float32))
    assert np.abs(px.load(out / "frames" / "0005-splats.ply").positions - saved).max() < 1e-6
    assert (out / "points.pvd").read_text().count("frames/000") == 6


@pytest.mark.parametrize("asked", ['points = "usd"', 'points = ["ply", "usd"]', 'mesh = "usd"'])
def test_usd_without_its_package_is_refused_before_anything_is_written(asked, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pxr", None)
    with pytest.raises(px.PhyxelError, match=r'output\.(points|mesh) = "usd".*phyxel\[usd\]'):
        play(SIMPLE.replace("[output]", f"[output]\n{asked}"), tmp_path / "out")
    assert files_in(tmp_path) == {}


def test_a_new_run_replaces_an_old_one(tmp_path):
    out = tmp_path / "out"
    play(SIMPLE, out)
    play(SIMPLE, out, seconds=0.04)
    assert len(frames_in(out)) == len(log_of(out)) == 3


# What is refused, before anything is written


def test_a_folder_with_something_else_is_refused(tmp_path):
    write(tmp_path / "out" / "thesis.txt", "five years")
    with pytest.raises(px.PhyxelError, match="--out"):
        play(SIMPLE, tmp_path / "out")
    assert files_in(tmp_path) == {"out/thesis.txt": b"five years"}


@pytest.mark.parametrize("below", [".", "deep/er"])
def test_a_file_in_place_of_the_folder_is_refused(below, tmp_path):
    write(tmp_path / "out", "mine").chmod(0o755)
    with pytest.raises(px.PhyxelError, match="out"):
        play(SIMPLE, tmp_path / "out" / below)
    assert files_in(tmp_path) == {"out": b"mine"}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    with pytest.raises(px.PhyxelError, match="cannot be written"):
        play(SIMPLE, tmp_path / "locked" / "out")


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs Linux")
def test_a_place_where_nobody_can_write_is_refused():
    with pytest.raises(px.PhyxelError, match="cannot be written"):
        Run(px.Scene.parse(SIMPLE), Path("/proc/phyxel-out")).play(False, quiet)


TOO_LATE = {
    "material": "[[event]]\nat = 0.05\nmaterial = { poisson = 0.7 }\n",
    "region": "[[event]]\nat = 0.05\nhold = { lower = [9, 9, 9] }\n",
    "force": "[[event]]\nat = 0.05\nforce = [nan, 0, 0]\n",
    "twice": '[[event]]\nat = 0\nhold = { name = "a" }\n' + 2 * '[[event]]\nat = 0.05\nrelease = "a"\n',
    "output": '[output]\nvideo = false\npoints = ["ply", "fbx"]\n',
}


@pytest.mark.parametrize("fault", TOO_LATE)
def test_a_fault_that_shows_later_is_found_before_anything_is_written(fault, tmp_path):
    text = SIMPLE.split("[output]")[0] + TOO_LATE[fault]
    if fault != "output":
        text += "[output]\nvideo = false\n"
    with pytest.raises(px.PhyxelError):
        play(text, tmp_path / "out")
    assert list(files_in(tmp_path)) == []


def test_a_faulty_scene_leaves_an_earlier_run_alone(tmp_path):
    out = tmp_path / "out"
    play(SIMPLE, out, seconds=0.04)
    before = files_in(out)
    with pytest.raises(px.PhyxelError):
        play(SIMPLE.replace("[output]", "[[event]]\nat = 0.05\nhold = { lower = [9, 9, 9] }\n[output]"), out)
    assert sorted(files_in(out)) == sorted(before)
    assert files_in(out) == before


# Going on


@pytest.fixture(scope="module")
def straight(tmp_path_factory) -> Path:
    """The eventful scene played without interruption; not to be changed."""
    folder = tmp_path_factory.mktemp("straight")
    scene = write(folder / "eventful.toml", EVENTFUL)
    Run(px.Scene.read(scene), folder / "out").play(False, quiet)
    assert len(frames_in(folder / "out")) == FRAMES
    return folder


def same_motion(one: Path, other: Path) -> None:
    """Two runs have the same frames, bit for bit, and the same log but for the clock on the wall."""
    assert list(frames_in(one)) == list(frames_in(other))
    differing = [name for name, content in frames_in(one).items() if frames_in(other)[name] != content]
    assert differing == []
    logs = [[row | {"milliseconds": None} for row in log_of(out)] for out in (one, other)]
    assert logs[0] == logs[1]


def test_the_eventful_scene_is_eventful(straight):
    rows = log_of(straight / "out")
    assert rows[20]["elastic"] > 1
    assert rows[-1]["momentum"][0] != pytest.approx(0, abs=1e-3)


@pytest.mark.slow
@pytest.mark.exact(reason="compares with what other processes compute, which know no jitter")
def test_a_run_survives_kill_9_with_the_same_bits(straight, tmp_path):
    scene, out = straight / "eventful.toml", tmp_path / "out"
    options = ["run", scene, "--out", out, "--device", "cpu"]
    for frame, resume in ((25, []), (50, ["--resume"])):
        process = begin(*options, *resume, cwd=tmp_path)
        wait_for(out / "frames" / f"{frame:04d}.ply", process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        done = frames_in(out)
        assert frame < len(done) < FRAMES
        reference = frames_in(straight / "out")
        assert all(reference[name] == content for name, content in done.items()), "what is there is whole"
    process = begin(*options, "--resume", cwd=tmp_path)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    same_motion(straight / "out", out)


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory) -> tuple[Path, subprocess.CompletedProcess]:
    """A run stopped by Ctrl-C: its folder, and how it ended. Started with fewer nodes than the scene has."""
    folder = tmp_path_factory.mktemp("interrupted")
    write(folder / "eventful.toml", EVENTFUL)
    process = begin("run", "eventful.toml", "--out", "out", "--nodes", "70", cwd=folder)
    wait_for(folder / "out" / "frames" / "0020.ply", process)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    return folder, subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def test_ctrl_c_ends_cleanly_and_says_how_to_go_on(interrupted):
    folder, process = interrupted
    assert process.returncode == 130
    assert "Traceback" not in process.stderr
    assert "--resume" in process.stderr
    rows, frames = log_of(folder / "out"), frames_in(folder / "out")
    assert 20 < len(frames) < FRAMES
    assert len(rows) in (len(frames), len(frames) - 1)
    assert not [name for name in files_in(folder / "out") if Path(name).name.startswith(".")]


@pytest.mark.exact(reason="goes on from what another process has saved, which knows no jitter")
def test_after_ctrl_c_resume_completes(interrupted, tmp_path):
    folder, _ = interrupted
    shutil.copytree(folder, tmp_path / "copy")
    play(EVENTFUL, tmp_path / "copy" / "out", resume=True, nodes=70)
    play(EVENTFUL, tmp_path / "straight", nodes=70)
    same_motion(tmp_path / "copy" / "out", tmp_path / "straight")


@pytest.mark.slow
def test_the_command_that_ctrl_c_shows_goes_on(interrupted, tmp_path):
    folder, process = interrupted
    shutil.copytree(folder, tmp_path / "copy")
    command = re.search(r"phyxel (run .*--resume.*)", process.stderr)
    assert command, process.stderr
    again = begin(*shlex.split(command[1]), cwd=tmp_path / "copy")
    _, errors = again.communicate(timeout=60)
    assert again.returncode == 0, errors
    assert len(frames_in(tmp_path / "copy" / "out")) == FRAMES


def stopped_after(out: Path, frame: int, text: str = SIMPLE) -> None:
    """A run that ended for some reason while making the frame after this one."""

    def stop(row):
        if row["frame"] == frame:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Run(px.Scene.parse(text), out).play(False, stop)


@pytest.mark.parametrize("frame", range(5))
def test_resume_from_any_frame(frame, finished, tmp_path):
    stopped_after(tmp_path / "out", frame)
    play(SIMPLE, tmp_path / "out", resume=True)
    same_motion(tmp_path / "out", finished)


@pytest.mark.parametrize("cut", [1, 2, 30, 10_000], ids=["brace", "two", "some", "all"])
def test_a_half_written_log_line_is_survived(cut, finished, tmp_path):
    out = tmp_path / "out"
    stopped_after(out, 3)
    whole = (out / "run.jsonl").read_text().splitlines(keepends=True)
    last = whole[-1].rstrip("\n")
    (out / "run.jsonl").write_text("".join(whole[:-1]) + last[: max(len(last) - cut, 0)])
    play(SIMPLE, out, resume=True)
    same_motion(out, finished)


def test_resume_of_a_complete_run_does_nothing(finished, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(finished, out)
    before = files_in(out)
    assert play(SIMPLE, out, resume=True) == []
    assert files_in(out) == before


def test_resume_with_more_seconds_makes_a_longer_run(finished, tmp_path):
    out = tmp_path / "out"
    play(SIMPLE, out, seconds=0.06)
    play(SIMPLE, out, resume=True)
    same_motion(out, finished)


@pytest.mark.parametrize(
    "change",
    [
        ("young = 1.0e5", "young = 2.0e5"),
        ("nodes = 64", "nodes = 125"),
        ("at = [0, 0.3, 0]", "at = [0, 0.4, 0]"),
        ("fps = 50", "fps = 25"),
        ("seconds = 0.1", "gravity = [0, -1, 0]"),
        ('kind = "ground"', 'kind = "ground"\nfriction = 0.1'),
        ("[output]", "[[event]]\nat = 0.01\nforce = [1, 0, 0]\n[output]"),
    ],
    ids=["material", "nodes", "place", "fps", "gravity", "friction", "event"],
)
def test_resume_with_a_checkpoint_of_another_scene_is_refused(change, finished, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(finished, out)
    before = files_in(out)
    with pytest.raises(CheckpointError, match="another scene"):
        play(SIMPLE.replace(*change), out, resume=True)
    assert files_in(out) == before


def test_resume_with_a_damaged_checkpoint_says_so(finished, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(finished, out)
    for path in (out / "checkpoints").glob("*.npz"):
        path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(CheckpointError, match="npz"):
        play(SIMPLE, out, resume=True)


@pytest.mark.parametrize("there", [False, True], ids=["no folder", "empty folder"])
def test_resume_of_nothing_is_refused(there, tmp_path):
    if there:
        (tmp_path / "out").mkdir()
    with pytest.raises(px.PhyxelError, match="--resume"):
        play(SIMPLE, tmp_path / "out", resume=True)
    assert (tmp_path / "out").exists() == there


def test_resume_leaves_nothing_of_the_killed_process(finished, tmp_path):
    """A process killed while it wrote a file leaves that file's beginning under a hidden name."""
    out = tmp_path / "out"
    stopped_after(out, 3)
    for name in ("frames/.0004.ply.k2j5x_9q", "checkpoints/.0004.npz.k2j5x_9q", ".run.jsonl.k2j5x_9q"):
        (out / name).write_bytes(b"ply\n")
    play(SIMPLE, out, resume=True)
    assert not [name for name in files_in(out) if Path(name).name.startswith(".")]


# Blow-ups


def test_a_blow_up_names_body_and_time_and_keeps_the_good_frames(tmp_path, monkeypatch):
    stable, calls = PhyxelModel.stable_step, []

    def later_unstable(model: PhyxelModel) -> float:
        calls.append(1)
        return stable(model) * (50 if len(calls) > 40 else 1)

    monkeypatch.setattr(PhyxelModel, "stable_step", later_unstable)
    with pytest.raises(BlowUpError, match=r"(tom|sphere).*t = \d") as caught:
        play(EVENTFUL, tmp_path / "out", nodes=70)
    rows, frames = log_of(tmp_path / "out"), sorted((tmp_path / "out" / "frames").glob("*"))
    assert 5 < len(frames) < FRAMES
    assert len(rows) == len(frames)
    assert float(re.search(r"t = ([\d.]+)", str(caught.value))[1]) >= rows[-1]["time"]
    assert np.isfinite([[row["kinetic"], row["elastic"], row["potential"]] for row in rows]).all()
    for path in frames:
        assert path.suffix == ".ply"
        assert np.isfinite(px.load(path).positions).all()
