from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from oddly.engine.api import train
from oddly.records import Run, RunWriter, VerdictTable
from oddly.report import write_report

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


def plain_text(html: str) -> str:
    """What a reader reads: no tags, no entities, each blank alike."""
    return " ".join(unescape(re.sub("<[^>]*>", " ", html)).split())


def test_a_whole_run(made_up_run: Callable[..., Run]) -> None:
    run = made_up_run()
    text, page = render(run)
    assert page.tags.count("svg") == 5  # the histogram twice (wide, narrow), three curves
    assert "97.50 %" in plain_text(text)
    assert "E = 15" in text
    assert f"threshold {run.summary['threshold']:.3g}" in text
    assert page.tags.count("table") == 2
    assert page.tags.count("h1") == 1


def test_words_of_the_papers_rule(made_up_run: Callable[..., Run]) -> None:
    text, _ = render(made_up_run())
    assert '<h2 id="scores">Losses</h2>' in text
    read = plain_text(text)
    assert "Images whose loss reaches the threshold are suspects." in read
    assert "replaced by random ones" not in read
    assert ">loss</text>" in text and ">score</text>" not in text
    assert "True labels are known here and used for scoring only" in read


def test_words_of_sentinels(made_up_run: Callable[..., Run]) -> None:
    run = made_up_run(source="sentinels")
    assert run.summary["threshold"] < 0
    text, _ = render(run)
    assert '<h2 id="scores">Scores</h2>' in text
    read = plain_text(text)
    assert "Images whose score reaches the threshold are suspects." in read
    assert "300 labels that were deliberately replaced by random ones (sentinels)" in read
    assert "The first bar includes all lower scores, the last bar all higher ones." in read
    assert f"threshold −{-run.summary['threshold']:.3g}" in text
    assert ">score</text>" in text and ">loss</text>" not in text
    assert re.search(r"examples: score below −[\d.]+<", text)
    assert re.search(r"examples: score [\d.]+ or more<", text)
    assert re.search(r"examples: score −[\d.]+ to −?[\d.]+<", text)


@pytest.mark.parametrize("source", ["weights", "sentinels"])
def test_pictures_are_well_formed_and_described(
    made_up_run: Callable[..., Run], source: str
) -> None:
    text, _ = render(made_up_run(source=source))
    pictures = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(pictures) == 5
    for picture in pictures:
        svg = ElementTree.fromstring(picture)
        title, description = svg.find("title"), svg.find("desc")
        assert title is not None and title.text
        assert description is not None and description.text
        assert svg.attrib["aria-labelledby"] == f"{title.attrib['id']} {description.attrib['id']}"
        for rect in svg.iter("rect"):
            assert float(rect.attrib["width"]) > 0
            assert float(rect.attrib["height"]) > 0
            if rect.attrib["class"] != "grip":  # which moves with the threshold
                assert float(rect.attrib["x"]) >= 52  # right of the axis


def test_nothing_is_fetched_and_one_script_runs(made_up_run: Callable[..., Run]) -> None:
    text, page = render(made_up_run())
    assert not {"link", "iframe", "object", "img", "form", "base"} & set(page.tags)
    assert not {"src", "srcset", "action"} & set(page.attributes)
    assert not re.search(r"https?://|url\((?!#)|@import", text)
    assert set(re.findall(r'href="(.)', text)) == {"#"}
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(scripts) == 1 and "</script" not in scripts[0]
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert (
        f"script-src &#39;sha256-{digest}&#39;" in text or f"script-src 'sha256-{digest}'" in text
    )


EVIL = [
    *("<img src=x onerror=alert(1)>", '"><script>alert(1)</script>', "</style>", "</script>"),
    *("<!--<script>", "{{ 7 * 7 }}", "\u2028", "' onfocus=alert(1) '"),
]


@pytest.mark.parametrize("evil", EVIL)
def test_hostile_names_are_shown_as_text(tmp_path: Path, evil: str) -> None:
    writer = RunWriter.create(tmp_path, {"method": evil}, {"python": evil, "device": evil})
    writer.append_metrics({"epoch": 1, "test_accuracy": 50})
    table = VerdictTable(
        ids=[evil, "b\udcff"],
        given_labels=np.asarray([0, 0]),
        losses=np.asarray([1.0, 2.0]),
        scores=np.asarray([1.0, 2.0]),
        counterfactual_percentiles=None,
        threshold=1.5,
        keep=np.asarray([True, False]),
        suggested_labels=np.asarray([0, 0]),
        suggested_confidences=np.asarray([np.nan, np.nan]),
        class_names=[evil],
    )
    writer.write_verdicts(table)
    writer.write_truth([0, 0], [evil], [0, 0])
    said = {"method": evil, "data": evil, "model": evil, "spared_classes": [evil]}
    writer.finish(said | {"noise": {"kind": evil, "rate": 1}})
    text, page = render(Run(tmp_path))
    assert page.tags.count("script") == 3 and page.tags.count("style") == 1
    assert "img" not in page.tags
    assert not [name for name in page.attributes if name.startswith("on")]
    assert plain_text(re.search("<h1>.*?</h1>", text)[0]) == plain_text(escape(evil))  # type: ignore[index]
    (data,) = re.findall(r'id="page-data">(.*?)</script>', text, re.DOTALL)
    assert json.loads(data)["names"] == {"0": evil}
    assert json.loads(data)["kept"]["ids"] == [evil]


def test_a_run_that_has_only_begun(tmp_path: Path) -> None:
    RunWriter.create(tmp_path, {"method": "odd", "epochs": 9}, {})
    text, page = render(Run(tmp_path))
    assert "Not finished: 0 of 9 epochs so far." in text
    assert "No epoch is finished yet" in text
    assert not {"svg", "script", "nav", "dialog"} & set(page.tags)


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
    read = plain_text(text)
    assert "No verdict: none of the 20 labels was judged." in read
    assert "This run judged no labels. These are the 20 highest losses, highest first." in read
    assert "Which labels are wrong: plain training memorises wrong labels" in read
    assert "Test accuracy" not in read and "random labels" not in read
    assert "slider" not in re.sub("<script.*?</script>", "", text, flags=re.DOTALL)
    assert '<h2 id="scores">Losses</h2>' in text
    assert page.tags.count("circle") == 1  # one epoch is a dot, not a line


@pytest.mark.parametrize("threshold", [None, 0.5])
def test_a_run_of_a_method_that_judges_by_a_rule_of_its_own(
    tmp_path: Path, threshold: float | None
) -> None:
    writer = RunWriter.create(tmp_path, {"method": "elr"}, {})
    losses, scores = np.array([3.0, 0.1, 0.2]), np.array([0.9, 0.1, 0.2])
    suggested, sure = np.array([1, 1, 1]), np.ones(3)
    keep, names = np.array([False, True, True]), ["a", "b"]
    given, shape = np.array([0, 1, 1]), (None, threshold, keep, suggested, sure, names)
    writer.write_verdicts(VerdictTable(["x", "y", "z"], given, losses, scores, *shape))
    rule = "the targets name another class"
    figures = {"precision": 1.0, "recall": 0.5}
    writer.finish({"method": "elr", "rule": rule, "threshold": threshold, **figures})
    read = plain_text(render(Run(tmp_path))[0])
    assert "1 of 3 labels judged wrong: the targets name another class." in read
    assert "Suspects 1 33.3 % of the images" in read
    assert "Precision 100.0" in read and "Recall 50.0" in read
    assert "Plain training" not in read and "random label" not in read
    assert ("score reaches the threshold" in read) == (threshold is not None)
    assert "loss reaches" not in read


def test_a_run_of_nothing(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path, {"method": "odd"}, {})
    empty = np.zeros(0)
    writer.write_verdicts(
        VerdictTable([], empty, empty, empty, None, None, empty, empty, empty, ["a", "b"])
    )
    writer.finish({})
    text, page = render(Run(tmp_path))
    assert "Nothing to show." in text and "svg" not in page.tags


def test_out_may_be_a_folder_or_a_file(made_up_run: Callable[..., Run], tmp_path: Path) -> None:
    run = made_up_run(n=50)
    assert write_report(run, tmp_path) == tmp_path / "report.html"
    assert write_report(run, tmp_path / "new" / "page.html").read_text().startswith("<!doctype")


def test_rendering_needs_no_torch(made_up_run: Callable[..., Run]) -> None:
    path = made_up_run(n=50).path
    code = (
        "import sys; from oddly.records import Run; from oddly.report import write_report;"
        f"write_report(Run({str(path)!r})); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_doubt_is_shown_where_there_is_one(made_up_run: Callable[..., Run]) -> None:
    run = made_up_run(n=60, source="sentinels")
    assert 'class="doubt"' not in render(run)[0]
    RunWriter(run.path).finish({**run.summary, "doubt": "the network <b>dozed</b>, look first"})
    text, _ = render(run)
    shown = '<p class="doubt" role="note">The network &lt;b&gt;dozed&lt;/b&gt;, look first.</p>'
    assert text.count(shown) == 1
    assert "labels look wrong, but this verdict is unreliable." in text


def test_no_suspect_of_a_network_that_learnt_nothing_is_no_praise(tmp_path: Path) -> None:
    learnt = {"nothing": 0.0, "enough": 0.05}
    options: dict[str, Any] = {"epochs": 8, "device": "cpu"}
    texts = {
        name: render(train("digits", tmp_path / name, learning_rate=rate, **options))[0]
        for name, rate in learnt.items()
    }
    assert "No verdict on 1,437 labels" in texts["nothing"]
    assert "stands out" not in texts["nothing"]
    assert "No verdict" not in texts["enough"]
