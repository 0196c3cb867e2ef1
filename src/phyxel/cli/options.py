"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from phyxel.cli import completion


def _node_count(text: str) -> int | str:
    try:
        return text if text == "auto" else int(text)
    except ValueError:
        raise typer.BadParameter(f'"{text}" is neither a whole number nor auto') from None


SceneName = Annotated[
    str, typer.Argument(help="A scene file (.toml) or the name of a gallery scene.", autocompletion=completion.scenes)
]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the results. Default: out/NAME.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint of the run in --out.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda or cuda:1. Default: CUDA where there is one.")]
Model = Annotated[Path | None, typer.Option(help="A scan or mesh to put in place of the built-in shapes.")]
Nodes = Annotated[
    Any | None,  # a number or "auto": Typer knows no unions
    typer.Option(
        "--nodes", "-n", parser=_node_count, metavar="NUMBER|auto",
        help="Nodes per body, in place of the scene's or 800; auto: as many as it needs to bend as it should.",
    ),
]  # fmt: skip
Seconds = Annotated[float | None, typer.Option(help="Seconds to simulate, in place of the scene's.")]
Video = Annotated[
    bool | None,
    typer.Option("--video/--no-video", help="Draw pictures and a preview video, or not."),
]
Units = Annotated[
    str | None, typer.Option(help="Of a file's numbers: m, dm, cm, mm, um, km, in or ft. Default: as the file says.")
]
Up = Annotated[str | None, typer.Option(help="A file's axis that points upward: x, y or z. Default: as the file says.")]
