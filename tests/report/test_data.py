from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from oddly.errors import InputError
from oddly.records import Run, RunWriter
from oddly.report import write_report
from oddly.report.data import Judged, RunPage
from oddly.report.facts import describe_run, format_seconds
from oddly.report.words import tell_outcome, tell_threshold
from tests.report.tables import NBSP


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0134, "13.4 ms"), (0, "0 ms"), (21.44, "21.4 s"), (600, "10 min"), (9000, "2.5 h")],
)
def test_seconds_read_like_a_person_would_say_them(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text.replace(" ", NBSP)


def judged(run: Run) -> tuple[RunPage, Judged]:
    page = RunPage.from_run(run)
    assert page.judged
    return page, page.judged


def test_page_of_a_whole_run(made_up_run: Callable[..., Run]) -> None:
    run = made_up_run()
    page, verdict = judged(run)
    removed = int((~run.verdicts["keep"]).sum())
    facts = {fact.name: (fact.value.replace(NBSP, " "), fact.note) for fact in page.facts}
    assert (page.title, page.subtitle) == ("digits", "odd · resnet8 · 40 epochs")
    assert page.outcome.startswith(f"{removed:,} of 1,500 labels look wrong.")
    assert facts["Images"] == ("1,500", "in 10 classes")
    assert facts["Suspects"][0] == f"{removed:,}"
    # 98 - 60 · 0.85^15 - 6 at epoch 15
    assert facts["Test accuracy"] == ("97.50 %", f"86.76{NBSP}% before pruning")
    assert facts["Threshold"] == (f"{run.summary['threshold']:.3g}", "from the weights, epoch 15")
    assert facts["Training time"] == ("21.4 s", f"of which 13{NBSP}ms denoising (0.1{NBSP}%)")
    assert facts["Estimated noise"] == ("–", "no labels were planted")
    assert "Left out" not in facts and "Duplicates" not in facts
    scores = {fact.name: fact.value.replace(NBSP, " ") for fact in page.scores}
    assert scores["Precision"] == f"{100 * run.summary['precision']:.1f} %"
    assert list(scores) == ["Precision", "Recall", "F1", "Average precision"]
    names = ["Learning rate", "Test accuracy, %", "Training loss"]
    assert [curve.name for curve in page.curves] == names
    assert page.curves[0].prune_after == 15
    assert (page.unit, page.units, page.source) == ("loss", "losses", "weights")
    assert sum(c.removed for c in verdict.classes) == removed
    assert verdict.matrix and sum(map(sum, verdict.matrix.counts)) == removed
    assert verdict.gallery.total == len(verdict.gallery.suspects) == removed
    assert verdict.truth_known and not verdict.tested_by_class


def test_words_about_the_threshold(made_up_run: Callable[..., Run]) -> None:
    page = RunPage.from_run(made_up_run())
    assert " ".join(page.origin).replace(NBSP, " ") == (
        "The threshold comes from 50,000 random labels drawn from the final layer's weights"
        " (the paper's rule). It lets about 10 % of these random labels pass (target: 10 %). It was"
        " applied after epoch 15, 3/8 of the epochs, as in the paper."
    )


def test_words_about_readmission_and_a_frozen_backbone() -> None:
    lines = tell_threshold({"source": "sentinels"}, {"readmitted": 13}, chosen=False)
    assert lines[1].startswith("Later, 13 images were readmitted")
    assert tell_threshold({"source": "sentinels"}, {"readmitted": 1}, False)[1].startswith(
        "Later, 1 image was"
    )
    assert len(tell_threshold({"source": "sentinels"}, {"readmitted": 0}, False)) == 1


def test_how_the_epoch_was_chosen() -> None:
    for source, chosen, how in (
        ("sentinels", False, "found during training"),
        ("sentinels", True, "as you chose"),
        ("weights", False, "3/8 of the epochs, as in the paper"),
        ("weights", True, "as you chose"),
        ("wrong_label", False, "3/8 of the epochs, as in the paper"),
    ):
        lines = tell_threshold({"source": source, "epoch": 3}, {}, chosen)
        assert lines[1] == f"It was applied after epoch 3, {how}."
    said = {"method": "odd", "model": "feature_head", "backbone": "net", "epochs": 15}
    assert describe_run(said) == "odd · net, frozen, with a head · 15 epochs"
    tuned = {"model": "net", "backbone": "net", "fine_tune": True}
    assert describe_run(tuned) == "net"


def test_page_of_a_run_with_sentinels(made_up_run: Callable[..., Run]) -> None:
    page, verdict = judged(made_up_run(source="sentinels"))
    (noise,) = (fact for fact in page.facts if fact.name == "Estimated noise")
    assert (noise.value, noise.note) == (f"38.7{NBSP}%", f"between 36.0 and 41.2{NBSP}%")
    assert (page.unit, page.units, page.source) == ("score", "scores", "sentinels")
    assert "300 labels that were deliberately replaced by random ones" in page.origin[0]
    assert verdict.whatif and verdict.whatif.thresholds[verdict.whatif.start] < 0


def test_estimated_noise_without_an_interval(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path, {}, {})
    writer.finish({"estimated_noise": {"rate": 0.05, "low": None, "high": None}})
    (noise,) = RunPage.from_run(Run(tmp_path)).facts
    assert (noise.value, noise.note) == (f"5.0{NBSP}%", "labels that look random")


def test_why_there_is_no_estimate(made_up_run: Callable[..., Run]) -> None:
    run = made_up_run(n=100)
    RunWriter(run.path).finish({"counterfactual": "sentinels", "estimated_noise": None})
    page = RunPage.from_run(Run(run.path))
    (noise,) = (fact for fact in page.facts if fact.name == "Estimated noise")
    assert (noise.value, noise.note) == ("–", "too few images")
    assert not any("estimate" in line for line in page.cannot_tell)


def test_what_was_left_out_and_what_occurs_twice(made_up_run: Callable[..., Run]) -> None:
    run = made_up_run(n=50)
    (run.path / "unreadable.csv").write_text(
        'id,reason\n"a,b.png",empty file\nlost+found/,closed\n'
    )
    (run.path / "duplicates.csv").write_text(
        "group,id,given_name,conflicting,same\n"
        "1,a,cat,true,same pixels\n1,b,dog,true,same pixels\n"
        "2,c,cat,false,same pixels\n2,d,cat,false,same pixels\n"
    )
    facts = {fact.name: (fact.value, fact.note) for fact in RunPage.from_run(run).facts}
    assert facts["Left out"] == ("1 image, 1 folder", "could not be read (unreadable.csv)")
    told = "more than once, 1 of them with different labels (duplicates.csv)"
    assert facts["Duplicates"] == ("2 pictures", told)
    for name in ("unreadable.csv", "duplicates.csv"):
        (run.path / name).write_bytes(b"\xff\xfe\x00")
    assert not {"Left out", "Duplicates"} & {fact.name for fact in RunPage.from_run(run).facts}


def test_settings_a_method_did_not_use_are_not_shown(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path, {"method": "erm", "prune_after": 9}, {})
    writer.append_metrics({"epoch": 1, "test_accuracy": None, "lr": 0.1})
    writer.finish({"method": "erm", "data": "digits", "prune_after": None, "threshold": None})
    page = RunPage.from_run(Run(tmp_path))
    assert page.settings == [] and page.origin == []
    assert [(curve.name, curve.prune_after) for curve in page.curves] == [("Learning rate", None)]
    assert page.outcome == "This run recorded nothing about individual images."


def test_classes_that_were_spared_are_named(made_up_run: Callable[..., Run]) -> None:
    run = made_up_run(n=50)
    (run.path / "summary.json").unlink()
    RunWriter(run.path).finish({"spared_classes": ["gnu", "emu"]})
    assert RunPage.from_run(run).origin[-1] == (
        "Classes kept whole because they are small or would be emptied: gnu, emu."
    )


def test_nothing_removed_is_praise_only_where_nothing_looks_wrong(
    made_up_run: Callable[..., Run],
) -> None:
    run = made_up_run(n=50)
    verdicts = run.verdicts
    verdicts["keep"] = True
    reaching = int((verdicts["score"] >= verdicts["threshold"]).sum())
    assert tell_outcome(run, verdicts).startswith(f"{reaching} of 50 labels look wrong, but none")
    verdicts["score"] = verdicts["threshold"] - 1
    assert "stands out" in tell_outcome(run, verdicts)
    run.config["settings"] = {"target_precision": 0.99}
    assert "stands out" not in tell_outcome(run, verdicts)


def test_what_to_mind_stands_above_everything_else(made_up_run: Callable[..., Run]) -> None:
    run = made_up_run(n=50)
    plain = RunPage.from_run(run)
    assert plain.notes == [] and "rule" not in " ".join([*plain.can_tell, *plain.cannot_tell])
    (run.path / "summary.json").unlink()
    RunWriter(run.path).finish({"doubt": "not to be trusted", "by_rule": "wrong by a <rule>"})
    run = Run(run.path)
    shown = RunPage.from_run(run)
    assert shown.notes == ["Wrong by a <rule>.", "Not to be trusted."]
    assert "look wrong, randomly or systematically, but this verdict is" in shown.outcome
    assert shown.can_tell[0].endswith(
        " a random label, or that shows the systematic confusion above."
    )
    page = write_report(run).read_text()
    told = re.findall(r'<p class="doubt" role="note">(.*?)</p>', page)
    assert told == ["Wrong by a &lt;rule&gt;.", "Not to be trusted."]
    RunWriter(run.path).finish(
        {"by_rule": "so", "estimated_noise": {"rate": 0.2, "low": 0.1, "high": 0.3}}
    )
    assert RunPage.from_run(Run(run.path)).cannot_tell[-1] == (
        "Exactly how many labels are wrong. The lower bound of the estimate counts only those that"
        " look entirely random or systematic; plausible human errors mostly lie between the two"
        " bounds."
    )


def test_tables_of_another_kind_are_refused_in_one_line(made_up_run: Callable[..., Run]) -> None:
    run = made_up_run(n=50)
    path = run.path / "verdicts.parquet"
    verdicts = pd.read_parquet(path)
    verdicts.drop(columns="score").to_parquet(path)
    with pytest.raises(
        InputError, match=r"verdicts.parquet: no column score; use the version that"
    ):
        RunPage.from_run(Run(run.path))
    verdicts.iloc[:20].to_parquet(path)
    with pytest.raises(InputError, match="truth.parquet: 50 rows for 20 verdicts; train again"):
        RunPage.from_run(Run(run.path))
