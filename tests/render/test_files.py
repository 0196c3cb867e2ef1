"""Pictures and videos as files, and discs for bare points."""

from __future__ import annotations

import av
import numpy as np
import pytest
from PIL import Image

from phyxel.errors import PhyxelError
from phyxel.render.files import encode, save_png


def test_png_comes_back_bit_for_bit_and_leaves_nothing_else(tmp_path):
    image = np.random.default_rng(0).integers(0, 256, (31, 47, 4), dtype=np.uint8)
    save_png(image, tmp_path / "picture.png")
    assert (np.asarray(Image.open(tmp_path / "picture.png")) == image).all()
    assert [path.name for path in tmp_path.iterdir()] == ["picture.png"]


def test_failed_png_leaves_nothing(tmp_path):
    with pytest.raises(TypeError):
        save_png(np.zeros((4, 4, 7), np.uint8), tmp_path / "picture.png")
    assert list(tmp_path.iterdir()) == []


def test_video_decodes_to_the_frames_it_was_made_of(tmp_path):
    pngs = []
    for k in range(7):
        image = np.full((61, 83, 4), 255, np.uint8)
        image[..., :3] = 30 * k
        pngs.append(tmp_path / f"{k:04d}.png")
        save_png(image, pngs[-1])
    encode(pngs, tmp_path / "video.mp4", fps=25)
    with av.open(str(tmp_path / "video.mp4")) as container:
        stream = container.streams.video[0]
        assert (stream.width, stream.height, float(stream.average_rate)) == (82, 60, 25.0)
        assert stream.codec_context.pix_fmt == "yuv420p"
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(stream)]
    assert len(frames) == 7
    assert [round(float(frame.mean())) for frame in frames] == pytest.approx([30 * k for k in range(7)], abs=3)
    data = (tmp_path / "video.mp4").read_bytes()
    assert data.index(b"moov") < data.index(b"mdat")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_video_without_frames_or_of_mixed_sizes_is_refused(tmp_path):
    with pytest.raises(PhyxelError, match="no frames"):
        encode([], tmp_path / "video.mp4", fps=25)
    for name, width in (("a.png", 64), ("b.png", 66)):
        save_png(np.zeros((64, width, 4), np.uint8), tmp_path / name)
    with pytest.raises(PhyxelError, match="unlike the first"):
        encode([tmp_path / "a.png", tmp_path / "b.png"], tmp_path / "video.mp4", fps=25)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "b.png"]
