"""The command line."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table

from phyxel import __version__
from phyxel.cli import completion
from phyxel.cli.options import Device, Model, Nodes, Out, Resume, SceneName, Seconds, Units, Up, Video
from phyxel.errors import PhyxelError, told_to
from phyxel.progress import heard_by

app = typer.Typer(
    name="phyxel",
    help="Point-sampled objects brought to life.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,
)
console = Console(stderr=True)


@app.command()
def run(
    scene: SceneName,
    out: Out = None,
    resume: Resume = False,
    device: Device = None,
    model: Model = None,
    nodes: Nodes = None,
    seconds: Seconds = None,
    video: Video = None,
    units: Units = None,
    up: Up = None,
) -> None:
    """Simulate a scene: frames, a log and a preview video in OUT."""
    from phyxel.run.run import as_run
    from phyxel.scene import find_scene

    chosen = find_scene(scene)
    folder = out or Path("out") / chosen.name
    if resume:
        chosen = as_run(chosen, folder)
    chosen = chosen.changed(seconds=seconds, nodes=nodes, model=model, video=video, units=units, up=up)
    play(chosen, folder, resume, device)


@app.command()
def drop(
    what: Annotated[str, typer.Argument(help="A scan or mesh, or the name of a built-in shape.")],
    out: Out = None,
    resume: Resume = False,
    device: Device = None,
    nodes: Nodes = None,
    seconds: Seconds = None,
    units: Units = None,
    up: Up = None,
) -> None:
    """Drop a scan: it falls on the ground, soft as jelly. A video, and a scene to change, in OUT."""
    from phyxel.cli.drop import bare, choices

    thing = bare(what, units, up)
    scene = thing.dropped(nodes, seconds)
    for line in choices(thing, scene):
        say(line)
    folder = out or Path("out") / scene.name
    play(scene, folder, resume, device)
    say(f"to change it: edit {folder / 'scene.toml'}, then phyxel run {folder / 'scene.toml'}")


@app.command()
def demo(out: Out = None, resume: Resume = False, device: Device = None) -> None:
    """The built-in scene: a gummy bear drops, lands and wobbles."""
    from phyxel.scene import gallery as gallery_scene

    play(gallery_scene("demo"), out or Path("out") / "demo", resume, device)


def play(scene: Any, out: Path, resume: bool, device: str | None) -> None:
    """Run a scene with a live progress bar and a summary at the end."""
    from phyxel.run import Run
    from phyxel.run.forecast import Forecast, time_text

    run = Run(scene, out, device)
    forecast = Forecast(scene.content, run.frames)
    console.print(f"[bold]{escape(scene.name)}[/bold]  {escape(scene.content.title)}")
    started = time.perf_counter()
    rows: list[dict[str, Any]] = []
    columns = (
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}  {task.fields[state]}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("setting up", total=run.frames, state="")

        def hear(what: str, done: int, most: int) -> None:
            said = what if done < most else "setting up"
            progress.update(task, description=said, completed=done, total=most)

        def report(row: dict[str, Any]) -> None:
            rows.append(row)
            speed = (row["time"] - rows[0]["time"]) / max(time.perf_counter() - started, 1e-9)
            energy = row["kinetic"] + row["elastic"]
            for line in forecast.hear(row):
                say(line)
            left = "" if forecast.left is None else f"  {time_text(forecast.left)} left"
            state = f"{row['time']:.2f} s  {speed:.2f}× real time  {energy:.3g} J moving and strained{left}"
            progress.update(task, completed=row["frame"] + 1, state=state)

        try:
            with heard_by(hear):
                run.play(resume, report)
        except KeyboardInterrupt:
            progress.stop()
            last = rows[-1]["frame"] if rows else "none"
            console.print(
                f"stopped; last whole frame {last}. Go on with:\n{again(resume)}", markup=False, soft_wrap=True
            )
            raise typer.Exit(130) from None
    summary(run, rows, time.perf_counter() - started)


def again(resume: bool) -> str:
    """The command that goes on with what was just stopped."""
    return shlex.join(["phyxel", *sys.argv[1:], *([] if resume else ["--resume"])])


def summary(run: Any, rows: list[dict[str, Any]], seconds: float) -> None:
    """What was made, how long it took, and where it is."""
    from phyxel.run.run import log_facts

    if not rows:
        console.print(f"nothing left to do; the run is complete in {run.folder}", markup=False)
        return
    table = Table("", Column(overflow="fold"), show_header=False, box=None)  # long paths whole, not cut off
    table.add_row("frames", f"{len(rows)} in {seconds:.1f} s, simulated {rows[-1]['time']:.2f} s")
    for fact in log_facts(rows):
        table.add_row(*fact)
    table.add_row("results", escape(str(run.folder)))
    if run.scene.content.output.video:
        table.add_row("video", escape(str(run.folder / "preview.mp4")))
    console.print(table)


@app.command()
def view(
    what: Annotated[
        str,
        typer.Argument(
            help="A scene (file or gallery name), a scan or mesh, a built-in shape, or a run's folder.",
            autocompletion=completion.scenes_and_scans,
        ),
    ],
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port to listen on. Default: 8765 or the next free one.")
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="Also reachable from elsewhere: the address to listen on; asks for a token.")
    ] = None,
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
    device: Device = None,
    nodes: Nodes = None,
    model: Model = None,
    units: Units = None,
    up: Up = None,
    html: Annotated[
        Path | None, typer.Option(help="Only write a finished run as one HTML file that plays it anywhere.")
    ] = None,
) -> None:
    """Pull it, heat it, break it: a running world or a finished run in the browser. Ctrl-C ends it."""
    from phyxel.view import save, view

    if html is not None:
        save(what, html, device, say)
        return
    try:
        with heard_by(lambda what, done, most: None if done else say(what)):
            where: dict[str, Any] = {"host": host, "port": port, "browser": browser}
            view(what, **where, device=device, nodes=nodes, model=model, units=units, up=up, report=say)
    except KeyboardInterrupt:
        say("ended")


def say(text: str) -> None:
    """One line for people, whole whatever is in it."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def note(text: str) -> None:
    """What looks unmeant."""
    console.print(f"[yellow]note:[/yellow] {escape(text)}", highlight=False, soft_wrap=True)


@app.command()
def render(
    run: Annotated[Path, typer.Argument(help="The folder of a run, for example out/demo.")],
    field: Annotated[
        str, typer.Option(help="What to show: stress, principal, strain, plastic, speed or distance.")
    ] = "stress",
    mode: Annotated[str, typer.Option(help="How: surface, slice, iso or volume.")] = "volume",
    frames: Annotated[str | None, typer.Option(help="Which frames, such as 10:40. Default: all.")] = None,
    frame: Annotated[int | None, typer.Option(help="One frame, as a single picture.")] = None,
    at: Annotated[
        list[str] | None, typer.Option("--slice", help='Where to cut, such as x or "z = 0.1" [m]; may be repeated.')
    ] = None,
    limits: Annotated[
        tuple[float, float] | None, typer.Option("--range", help="Values at the ends of the colour scale.")
    ] = None,
    opacity: Annotated[
        tuple[float, float] | None, typer.Option(help="Values between which fog goes from clear to dense.")
    ] = None,
    brightness: Annotated[float | None, typer.Option(help="How much light fog gives; 1 is plain.")] = None,
    beside: Annotated[bool, typer.Option("--beside", help="Draw the plain surface at its left.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder, or file of a single frame. Default: RUN/render-FIELD-MODE."),
    ] = None,
    device: Device = None,
) -> None:
    """Draw a finished run anew, with what is inside its bodies; the run stays as it is."""
    from phyxel.run.redraw import Redrawing

    looks: dict[str, Any] = {"field": field, "mode": mode, "slice": at or None, "range": limits, "opacity": opacity}
    looks |= {"brightness": brightness, "beside": beside or None}
    redrawing = Redrawing(run, looks, frames if frame is None else str(frame), device)
    if not redrawing.has_states:
        console.print(
            "this run has not kept all its states: its scene is played again. With states = true in [output] it would "
            "be drawn at once",
            markup=False,
            soft_wrap=True,
        )
    columns = (TextColumn("[bold]{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("setting up", total=1)

        def report(what: str, done: int, most: int) -> None:
            progress.update(task, description=what, completed=done, total=most)

        with heard_by(report):
            written = redrawing.save(out, report)
    console.print(str(written), markup=False, soft_wrap=True)


@app.command()
def gallery() -> None:
    """The scenes that come with Phyxel; each runs with `phyxel run NAME`."""
    from phyxel.scene import gallery as gallery_scene
    from phyxel.scene import gallery_names

    table = Table("scene", "what happens")
    for name in gallery_names():
        table.add_row(name, gallery_scene(name).content.title)
    Console().print(table)


@app.command()
def modes(
    scene: SceneName,
    count: Annotated[int, typer.Option("--modes", "-m", help="Modes to find, the lowest first.")] = 12,
    body: Annotated[str | None, typer.Option(help="Name of the body, where a scene has several.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for it. Default: out/NAME-modes.")] = None,
    video: Annotated[bool, typer.Option("--video", help="Also a video of all modes swinging.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON line for each mode, in place of the table.")
    ] = False,
    model: Model = None,
    units: Units = None,
    up: Up = None,
    nodes: Nodes = None,
    device: Device = None,
) -> None:
    """How a body of a scene vibrates, held as it is at the start: a table of frequencies, and pictures."""
    from phyxel.body.vibration import modes as modes_of
    from phyxel.files import check_folder
    from phyxel.scene import find_scene

    chosen = find_scene(scene).changed(nodes=nodes, model=model, units=units, up=up)
    folder = out or Path("out") / f"{chosen.name}-modes"
    check_folder(folder)
    columns = (TextColumn("[bold]{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("setting up", total=1.0)

        def report(stage: str, share: float) -> None:
            progress.update(task, description=stage, completed=share)

        with heard_by(lambda what, done, most: report(what, done / most)):
            found = modes_of(chosen.body(body, device), count, report)
            files = draw_modes(found, chosen.content.camera, folder, video, report)
    if as_json:
        for number, frequency in enumerate(found.frequencies.tolist(), 1):
            print(json.dumps({"mode": number, "frequency": frequency, "period": 1 / frequency}))
        return
    table = Table("mode", escape("frequency [Hz]"), escape("period [s]"))
    for number, frequency in enumerate(found.frequencies, 1):
        table.add_row(str(number), f"{frequency:.4g}", f"{1 / frequency:.4g}")
    Console().print(table)
    for file in files:
        console.print(str(file), markup=False, soft_wrap=True)


def draw_modes(found: Any, camera: Any, folder: Path, video: bool, report: Any) -> list[Path]:
    """Write pictures of modes, as the scene's camera looks at them; which files."""
    from phyxel.render.files import save_png
    from phyxel.render.modes import ModePictures

    placed = camera.eye is not None and camera.target is not None
    direction = [a - b for a, b in zip(camera.eye, camera.target, strict=True)] if placed else camera.direction
    drawn = ModePictures(found, direction, camera.fov)
    files = [folder / "modes.png"]
    save_png(drawn.sheet(report), files[0])
    if video:
        files.append(folder / "modes.mp4")
        drawn.video(files[1], report)
    return files


@app.command()
def sample(
    model: Annotated[str, typer.Argument(help="A scan or mesh (PLY, OBJ, STL, XYZ), or the name of a built-in shape.")],
    nodes: Nodes = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw it cut open, with its nodes, to this .png or .jpg file.")
    ] = None,
    points: Annotated[int | None, typer.Option(help="Points to take, in place of the file's number.")] = None,
    units: Units = None,
    up: Up = None,
    opacity: Annotated[
        float | None, typer.Option(help="Of Gaussian splats: less opaque ones are no surface. Default: 0.5.")
    ] = None,
    closing: Annotated[
        float | None, typer.Option(help="Share of the surface that may be made up to close holes. Default: 0.3.")
    ] = None,
    device: Device = None,
) -> None:
    """Show what is understood of a file or shape: its solid and nodes, and a picture of it cut open."""
    from phyxel.body.resolution import USUAL_NODES
    from phyxel.cli.sample import rows_of, take, tips_of

    with (
        console.status("starting") as status,
        heard_by(lambda what, done, most: status.update(f"{escape(what)} {done}/{most}")),
    ):
        taken = take(
            model, nodes or USUAL_NODES, picture, points=points, units=units, up=up, opacity=opacity, closing=closing,
            device=device, report=lambda stage: status.update(escape(stage)),
        )  # fmt: skip
    table = Table(show_header=False, box=None)
    for what, found in rows_of(taken):
        table.add_row(what, escape(found))
    output = Console(highlight=False)
    output.print(table)
    for tip in tips_of(taken):
        output.print(f"[yellow]tip:[/yellow] {escape(tip)}", soft_wrap=True)


@app.command()
def bench(
    names: Annotated[
        list[str] | None, typer.Argument(help="Benchmarks to run. Default: all but the slow ones.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON line for each result.")] = False,
    models: Annotated[Path | None, typer.Option(help="Folder with scans. Default: $PHYXEL_MODELS.")] = None,
    peers: Annotated[bool, typer.Option("--peers", help="Run other tools beside, where installed.")] = False,
    only: Annotated[str, typer.Option(help="Of accuracy: rows with these words in their test or model.")] = "",
    page: Annotated[Path | None, typer.Option(help="Of accuracy: the page to write (.md).")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Leave alone what the page has already.")] = False,
    device: Device = None,
) -> None:
    """Measure speed, memory and accuracy."""
    from phyxel.bench import BenchSetting, measure

    folder = models or (Path(os.environ["PHYXEL_MODELS"]) if "PHYXEL_MODELS" in os.environ else None)
    table = Table("benchmark", "value", "unit", "compared with", "ratio")
    setting = BenchSetting(models=folder, peers=peers, device=device, only=only, page=page, resume=resume)
    for result in measure(names or [], setting):
        if as_json:
            print(json.dumps(result.row()), flush=True)
        else:
            console.print(result.line())
            table.add_row(*result.cells())
    if not as_json:
        Console().print(table)


@app.command()
def doctor() -> None:
    """What Phyxel finds on this machine, and whether it computes right."""
    from phyxel.cli.doctor import examine

    healthy = True
    table = Table("what", "found", "")
    for what, found, fine in examine():
        healthy &= fine
        table.add_row(what, escape(found), "[green]ok[/green]" if fine else "[red]look here[/red]")
    Console().print(table)
    if not healthy:
        raise typer.Exit(1)


def _version(asked: bool) -> None:
    if asked:
        print(f"phyxel {__version__}")
        raise typer.Exit()


@app.callback()
def start(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and end.")
    ] = False,
) -> None:
    """Point-sampled objects brought to life."""


def main() -> None:
    """Entry point: what is raised on purpose becomes a message, not a traceback."""
    try:
        with told_to(note):
            app()
    except PhyxelError as error:
        console.print(f"[red]error:[/red] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(1)
