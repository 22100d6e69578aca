from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from oddly.records import Run, RunWriter, VerdictTable
from oddly.report import write_report
from oddly.report.render import find_root_steps, find_steps

VOID = {"meta", "link", "br", "img", "input"}


class Page(HTMLParser):
    """Collects tags and ids, and checks that tags close in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.attributes: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def render(run: Run) -> tuple[str, Page]:
    text = write_report(run).read_text(encoding="utf-8")
    page = Page(text)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert "nan" not in re.findall(r"[a-z]+", text)
    assert "None" not in text
    return text, page


def test_a_whole_run(made_up_run: Callable[..., Run]) -> None:
    run = made_up_run()
    text, page = render(run)
    assert page.tags.count("svg") == 5  # the histogram twice (wide, narrow), three curves
    assert "97.50 %" in text
    assert "E = 15" in text
    assert f"threshold {run.summary['threshold']:.3g}" in text
    assert page.tags.count("caption") == page.tags.count("table") == 2


def test_words_of_the_papers_rule(made_up_run: Callable[..., Run]) -> None:
    text, _ = render(made_up_run())
    assert '<h2 id="scores">Losses</h2>' in text
    assert (
        "removed when its loss after epoch 15 is above the threshold, which is percentile" in text
    )
    assert "really replaced" not in text
    assert ">loss</text>" in text and ">score</text>" not in text
    assert ">Loss</th>" in text and ">Score</th>" not in text
    assert "The 50 highest losses" in text


def test_words_of_sentinels(made_up_run: Callable[..., Run]) -> None:
    run = made_up_run(source="sentinels")
    assert run.summary["threshold"] < 0
    text, _ = render(run)
    assert '<h2 id="scores">Scores</h2>' in text
    assert (
        "An example is removed when its score after epoch 15 is at or above the threshold. The"
        " score is how far the network would rather say another class (margin, averaged over"
        " epochs); the line shows 300 examples whose label was really replaced by a random one."
    ) in text
    assert "The first bar also holds all lower scores, the last all higher ones." in text
    assert f"threshold −{-run.summary['threshold']:.3g}" in text
    assert ">score</text>" in text and ">loss</text>" not in text
    assert ">Score</th>" in text and ">Loss</th>" in text
    assert re.search(r"kept: score below −[\d.]+<", text)
    assert re.search(r"removed: score [\d.]+ or more<", text)
    assert re.search(r"removed: score −[\d.]+ to −?[\d.]+<", text)


@pytest.mark.parametrize("source", ["weights", "sentinels"])
def test_pictures_are_well_formed_and_described(
    made_up_run: Callable[..., Run], source: str
) -> None:
    text, _ = render(made_up_run(source=source))
    pictures = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    for picture in pictures:
        svg = ElementTree.fromstring(picture)
        title, description = svg.find("title"), svg.find("desc")
        assert title is not None and title.text
        assert description is not None and description.text
        assert svg.attrib["aria-labelledby"] == f"{title.attrib['id']} {description.attrib['id']}"
        for rect in svg.iter("rect"):
            assert float(rect.attrib["width"]) > 0
            assert float(rect.attrib["height"]) > 0
            assert float(rect.attrib["x"]) >= 52  # right of the axis


def test_nothing_is_fetched_and_nothing_runs(made_up_run: Callable[..., Run]) -> None:
    text, page = render(made_up_run())
    assert not {"script", "link", "iframe", "object", "img"} & set(page.tags)
    assert not {"src", "href"} & set(page.attributes)
    assert not re.search(r"https?://|url\(|@import", text)


@pytest.mark.parametrize(
    "evil", ["<img src=x onerror=alert(1)>", '"><script>x</script>', "</style>"]
)
def test_hostile_names_are_shown_as_text(tmp_path: Path, evil: str) -> None:
    writer = RunWriter.create(tmp_path, {"method": evil}, {"python": evil, "device": evil})
    writer.append_metrics({"epoch": 1, "test_accuracy": 50})
    table = VerdictTable(
        ids=[evil, "b\udcff"],
        given_labels=np.asarray([0, 0]),
        losses=np.asarray([1.0, 2.0]),
        scores=np.asarray([1.0, 2.0]),
        counterfactual_percentiles=None,
        threshold=None,
        keep=np.asarray([True, True]),
        suggested_labels=np.asarray([0, -1]),
        suggested_confidences=np.asarray([np.nan, np.nan]),
        class_names=[evil],
    )
    writer.write_verdicts(table)
    writer.write_truth([0, 0], [evil], [0, 0])
    writer.finish({"method": evil, "data": evil, "model": evil, "noise": {"kind": evil, "rate": 1}})
    text, page = render(Run(tmp_path))
    assert evil not in text.partition("</style>")[2]
    assert not {"img", "script"} & set(page.tags)
    assert page.tags.count("style") == 1
    assert "onerror" not in page.attributes
    assert evil.split()[0].lstrip('"').replace("<", "&lt;").replace(">", "&gt;") in text


def test_a_run_that_has_only_begun(tmp_path: Path) -> None:
    RunWriter.create(tmp_path, {"method": "odd", "epochs": 9}, {})
    text, page = render(Run(tmp_path))
    assert "not finished: 0 of 9 epochs so far" in text
    assert "No epoch is finished yet" in text
    assert "svg" not in page.tags


def test_a_run_without_counterfactual_truth_or_test_set(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path, {"method": "erm"}, {})
    writer.append_metrics({"epoch": 1, "lr": 0.1, "test_accuracy": None, "train_loss": None})
    n = 20
    writer.write_verdicts(
        VerdictTable(
            ids=[str(i) for i in range(n)],
            given_labels=np.zeros(n),
            losses=np.linspace(0, 1, n),
            scores=np.linspace(0, 1, n),
            counterfactual_percentiles=None,
            threshold=None,
            keep=np.ones(n, np.bool_),
            suggested_labels=np.full(n, -1),
            suggested_confidences=np.full(n, np.nan),
            class_names=["only"],
        )
    )
    keys = ("test_accuracy", "threshold", "prune_after", "percentile", "seconds", "noise")
    writer.finish({"method": "erm", "data": "folder", **dict.fromkeys(keys)})
    text, page = render(Run(tmp_path))
    assert "0 of 20 examples" in text
    assert "Test accuracy" not in text
    assert "random labels" not in text
    assert '<h2 id="scores">Losses</h2>' in text
    assert page.tags.count("circle") == 1  # one epoch is a dot, not a line


def test_out_may_be_a_folder_or_a_file(made_up_run: Callable[..., Run], tmp_path: Path) -> None:
    run = made_up_run(n=50)
    assert write_report(run, tmp_path) == tmp_path / "report.html"
    assert write_report(run, tmp_path / "new" / "page.html").read_text().startswith("<!doctype")


def test_steps_are_round() -> None:
    assert find_steps(0, 8.9, 5) == [0, 2, 4, 6, 8]
    assert find_steps(38, 97.9, 4, outside=True) == [20, 40, 60, 80, 100]
    assert find_steps(0, 0.1, 4, outside=True) == [0, 0.05, 0.1]
    assert find_steps(1, 1, 5) == [1]
    assert find_steps(0, 0, 5) == [0]
    assert find_root_steps(539) == [0, 30, 100, 300, 500]
    assert find_root_steps(1) == [0, 1]
    assert find_root_steps(165) == [0, 10, 40, 90]  # 100 would touch 90
    assert find_steps(-2.1, 2.9, 5) == [-2, -1, 0, 1, 2]


def test_rendering_needs_no_torch(made_up_run: Callable[..., Run]) -> None:
    path = made_up_run(n=50).path
    code = (
        "import sys; from oddly.records import Run; from oddly.report import write_report;"
        f"write_report(Run({str(path)!r})); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
