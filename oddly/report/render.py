"""Render page data as one HTML file that needs no other files."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jinja2

from oddly.records import Run, write_atomic
from oddly.records.files import plain
from oddly.report.charts import draw_curve, draw_histogram
from oddly.report.data import RunPage
from oddly.report.gallery import Progress

HERE = Path(__file__).parent
SCRIPT = ("page.js", "gallery.js", "threshold.js", "keys.js")  # in the order they build on
CHUNK = 250  # pictures that the page loads at a time


def write_report(
    run: Run,
    out: Path | None = None,
    images: Path | None = None,
    progress: Progress | None = None,
) -> Path:
    """Write the page of a run, by default as report.html in its folder; returns its path.

    `images`: the folder of the image files, if they have moved. `progress` is called with the
    number of pictures that are done, and the total.
    """
    path = Path(out) if out else run.path / "report.html"
    if path.is_dir():
        path = path / "report.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, render_page(RunPage.from_run(run, images, progress)))
    return path


def render_page(page: RunPage) -> str:
    """The page as HTML."""
    # text in a chart shrinks with it, so phones get their own charts
    histograms = {
        kind: draw_histogram(page.judged.histogram, width, kind)
        for kind, width in (("wide", 920), ("narrow", 350))
        if page.judged and page.judged.histogram
    }
    return render(
        "run.html",
        page=page,
        histograms=histograms,
        curves=[draw_curve(curve, f"curve-{i}") for i, curve in enumerate(page.curves)],
        data=list_data(page),
        chunks=list(cut_pictures(page)),
    )


def render(template: str, **values: Any) -> str:
    """Render a template with the style and the script inlined.

    Only that script may run on the page: the content security policy contains its hash.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,  # names of files and classes are not trusted
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, *parts = (
        (HERE / "static" / name).read_text(encoding="utf-8") for name in ("style.css", *SCRIPT)
    )
    script = "\n".join(parts)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template(template).render(
        style=style, script=script, script_hash=f"sha256-{digest}", **values
    )


def list_data(page: RunPage) -> dict[str, Any]:
    """The data for the script; pictures are separate, since there may be many."""
    judged = page.judged
    if judged is None:
        return {}
    data: dict[str, Any] = {"unit": page.unit, "names": judged.class_names}
    data["whatif"] = judged.whatif and vars(judged.whatif)
    for name, shown in (("suspects", judged.gallery.suspects), ("kept", judged.gallery.kept)):
        data[name] = {key: value for key, value in vars(shown).items() if key != "pictures"}
    data["total"] = judged.gallery.total
    known: dict[str, Any] = plain(data)
    return known


def cut_pictures(page: RunPage) -> Iterator[Sequence[str | None]]:
    """The pictures of suspects, then of kept examples, in chunks."""
    if page.judged:
        gallery = page.judged.gallery
        pictures = [*gallery.suspects.pictures, *gallery.kept.pictures]
        for start in range(0, len(pictures), CHUNK):
            yield pictures[start : start + CHUNK]
