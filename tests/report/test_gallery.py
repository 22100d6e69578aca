from __future__ import annotations

import base64
import io
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from oddly.pictures import from_pixels, shrink
from oddly.records import Run, RunWriter
from oddly.report.gallery import Gallery, describe_score, find_pictures


@pytest.mark.parametrize(
    ("percentile", "words"),
    [
        (100.0, "worse than every random label"),
        (99.4, "worse than 99.4 % of random labels"),
        (86.6, "worse than 87 % of random labels"),
        (0.4, "worse than 0.4 % of random labels"),
        (0.0, "better than every random label"),
        (None, "loss −1.50"),
    ],
)
def test_scores_in_words(percentile: float | None, words: str) -> None:
    assert describe_score(percentile, -1.5, "loss") == words
    assert describe_score(percentile, None, "loss") == "never seen in training"
    by_rule = "systematic confusion" if percentile is None else words
    assert describe_score(percentile, -1.5, "loss", by_rule=True) == by_rule


def test_suspects_and_kept_examples(made_up_run: Callable[..., Run]) -> None:
    run = made_up_run(n=300)
    gallery = Gallery.from_run(run, "loss")
    keep = dict(zip(run.verdicts["id"], run.verdicts["keep"], strict=True))
    scores = gallery.suspects.score
    assert not any(keep[name] for name in gallery.suspects.ids)
    assert scores == sorted(scores, key=lambda score: -(score or 0))
    assert len(gallery.suspects) == gallery.total == sum(not kept for kept in keep.values())
    assert len(gallery.kept) == 48 and all(keep[name] for name in gallery.kept.ids)
    assert gallery.suspects.true == gallery.suspects.suggested  # as the run was made up
    assert gallery.pictureless == len(gallery.suspects) + 48


def test_a_share_is_rounded_as_on_the_review_page(made_up_run: Callable[..., Run]) -> None:
    """24.457 % is 24 %, and not 25 % by way of 24.5 %."""
    run = made_up_run(n=2_000)
    suspects = Gallery.from_run(run, "loss").suspects
    exact = run.verdicts.set_index("id")["suggested_confidence"].loc[list(suspects.ids)]
    assert len(suspects) > 100
    assert [round(100 * (c or 0)) for c in suspects.confidence] == [round(100 * c) for c in exact]


def decoded(address: str | None) -> Image.Image:
    assert address is not None
    head, _, body = address.partition(",")
    assert head == "data:image/webp;base64"
    return Image.open(io.BytesIO(base64.b64decode(body)))


def bomb(side: int) -> bytes:
    """A PNG of a few bytes that says it is `side` pixels wide and high."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + body))
        return struct.pack(">I", len(body)) + kind + body + check

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def test_pictures_come_from_files_and_bad_ones_harm_nothing(
    made_up_run: Callable[..., Run], tmp_path: Path
) -> None:
    run = made_up_run(n=50)
    folder = tmp_path / "images" / "train"
    folder.mkdir(parents=True)
    Image.new("RGB", (400, 200), "red").save(folder / "00000.png")
    whole = (folder / "00000.png").read_bytes()
    (folder / "00001.png").write_bytes(whole[: len(whole) // 2])
    (folder / "00002.png").write_bytes(bomb(100_000))
    (folder / "00003.png").write_bytes(bomb(9_000))  # below Pillow's limit, above ours
    (folder / "00004.png").mkdir()
    os.mkfifo(folder / "00005.png")
    (folder / "00006.png").write_text("<svg onload='alert(1)'/>")
    steps: list[tuple[int, int]] = []
    found = find_pictures(
        run, np.arange(8), tmp_path / "images", lambda done, total: steps.append((done, total))
    )
    assert decoded(found[0]).size == (96, 48)
    assert found[1:] == [None] * 7
    assert steps == [(8, 8)]


def test_stored_pictures_stand_in_for_files(made_up_run: Callable[..., Run]) -> None:
    run = made_up_run(n=50)
    small = shrink(from_pixels(np.full((1, 8, 8), 200, np.uint8)))
    stored = {0: small, 1: b"<svg/>", 2: b"RIFF....WEBP" + bytes(100_000)}
    RunWriter(run.path).write_thumbnails(stored)
    found = find_pictures(Run(run.path), np.arange(4), None)
    assert decoded(found[0]).size == (8, 8)
    assert found[1:] == [None] * 3  # what is no small WebP is not shown


@pytest.mark.parametrize("content", ["not Parquet", None])
def test_a_broken_store_of_pictures_breaks_no_page(
    made_up_run: Callable[..., Run], content: str | None
) -> None:
    run = made_up_run(n=50)
    path = run.path / "thumbnails.parquet"
    if content:
        path.write_text(content)
    else:
        pd.DataFrame({"other": [1]}).to_parquet(path)
    assert find_pictures(Run(run.path), np.arange(4), None) == [None] * 4


def test_a_run_finds_its_files_itself(made_up_run: Callable[..., Run], tmp_path: Path) -> None:
    run = made_up_run(n=50)
    data = tmp_path / "photos"
    (data / "train").mkdir(parents=True)
    for i in range(50):
        Image.new("RGB", (10, 10), (5 * i, 0, 0)).save(data / f"train/{i:05d}.png")
    (run.path / "config.json").write_text('{"format": 1, "data": "photos"}')
    (run.path / "environment.json").write_text(f'{{"folder": "{tmp_path}"}}')
    gallery = Gallery.from_run(Run(run.path), "loss")
    assert gallery.pictureless == 0
    place = int(gallery.suspects.ids[0][-9:-4])
    assert decoded(gallery.suspects.pictures[0]).convert("RGB").getpixel((5, 5)) == (
        5 * place,
        0,
        0,
    )
