from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from oddly.core import Verdict
from oddly.core.counterfactual import Counterfactual
from oddly.data import synthetic
from oddly.data.source import ImageFiles
from oddly.engine.build import build
from oddly.engine.config import RunConfig
from oddly.engine.evaluate import Predictions, predict
from oddly.engine.loop import run_config
from oddly.engine.outcome import describe_device, describe_verdict, make_thumbnails, verdict_table
from oddly.records import Run

COLUMNS = [
    *("index", "id", "given_label", "given_name", "loss", "score"),
    *("counterfactual_percentile", "threshold", "keep"),
    *("suggested_label", "suggested_name", "suggested_confidence"),
]


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("odd")
    settings = {"counterfactual": "weights", "prune_after": 4, "percentile": 10}
    return run_config(RunConfig("synthetic", epochs=8, noise=0.4, settings=settings), folder)


@pytest.fixture(scope="module")
def erm(tmp_path_factory: pytest.TempPathFactory) -> Run:
    config = RunConfig("synthetic", method="erm", epochs=2, noise=0.4)
    return run_config(config, tmp_path_factory.mktemp("erm"))


def test_every_file_is_there(odd: Run, erm: Run) -> None:
    always = {"config.json", "environment.json", "metrics.jsonl", "verdicts.parquet"}
    always |= {"truth.parquet", "thumbnails.parquet", "model.safetensors", "summary.json", "done"}
    assert {file.name for file in odd.path.iterdir()} == always | {"counterfactual.json"}
    assert {file.name for file in erm.path.iterdir()} == always


def test_the_verdict_columns(odd: Run) -> None:
    table = odd.verdicts
    assert list(table.columns) == COLUMNS and len(table) == 120
    assert table["index"].tolist() == list(range(120))
    assert table["id"].tolist() == list(synthetic().train.ids)
    assert (table["keep"] == (table["score"] < table["threshold"])).all()
    assert (table["given_name"] == "class " + table["given_label"].astype(str)).all()
    assert table["counterfactual_percentile"].between(0, 100).all()
    order = np.argsort(table["score"].to_numpy())
    assert (np.diff(table["counterfactual_percentile"].to_numpy()[order]) >= 0).all()


def test_the_summary_agrees_with_the_tables(odd: Run) -> None:
    summary, table, truth = odd.summary, odd.verdicts, odd.truth
    assert truth is not None
    removed, wrong = ~table["keep"].to_numpy(), truth["mislabelled"].to_numpy()
    assert (truth["true_label"] != table["given_label"]).to_numpy().tolist() == wrong.tolist()
    assert summary["removed"] == removed.sum()
    assert summary["removed_fraction"] == pytest.approx(removed.mean())
    assert summary["precision"] == pytest.approx(wrong[removed].mean())
    assert summary["recall"] == pytest.approx(removed[wrong].mean())
    assert summary["noise"] == {"kind": "uniform", "rate": 0.4, "realised": wrong.mean()}
    assert summary["threshold"] == pytest.approx(table["threshold"].iloc[0], rel=1e-6)
    assert (summary["prune_after"], summary["percentile"]) == (4, 10.0)
    assert summary["mirror_test"] is False
    assert {"method", "test_accuracy", "seconds", "denoise_seconds", "f1"} <= summary.keys()
    assert 0.8 < summary["average_precision"] <= 1


def test_the_counterfactual_file(odd: Run) -> None:
    counterfactual = odd.counterfactual
    assert counterfactual is not None
    assert counterfactual["percentile"] == 10.0 and counterfactual["epoch"] == 4
    assert counterfactual["threshold"] == odd.summary["threshold"]
    assert sum(counterfactual["histogram"]["counts"]) > 0
    assert "percentiles" in counterfactual


def test_suggestions_are_the_saved_networks(odd: Run) -> None:
    parts = build(RunConfig.from_dict(odd.config))
    parts.model.load_state_dict(load_file(odd.path / "model.safetensors"))
    predictions = predict(parts.model, parts.train_feed)
    assert odd.verdicts["suggested_label"].tolist() == predictions.labels.tolist()
    np.testing.assert_allclose(
        odd.verdicts["suggested_confidence"], predictions.confidences, rtol=1e-5
    )


def test_a_method_without_a_verdict_keeps_everything(erm: Run) -> None:
    assert erm.verdicts["keep"].all() and erm.counterfactual is None
    assert erm.verdicts["threshold"].isna().all()
    assert erm.verdicts["counterfactual_percentile"].isna().all()
    assert erm.verdicts["loss"].notna().all()
    summary = erm.summary
    assert summary["removed_fraction"] == 0 and summary["threshold"] is None
    assert summary["precision"] is None and summary["recall"] == 0


def test_thumbnails_show_the_suspects_and_some_others(odd: Run, erm: Run) -> None:
    assert not odd.verdicts["keep"].all()
    assert set(odd.thumbnails) == set(range(120))  # with the highest of the kept ones
    assert set(erm.thumbnails) == set(range(120))  # the highest losses
    images = synthetic().train.images
    assert isinstance(images, torch.Tensor)
    index, content = next(iter(odd.thumbnails.items()))
    pixels = np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))
    assert np.array_equal(pixels, images[index].permute(1, 2, 0).numpy())  # tiny: nothing is lost


def test_image_files_leave_no_thumbnails() -> None:
    table = verdict_table(
        synthetic(), None, Predictions(*(torch.zeros(120) for _ in range(3)), torch.zeros(120))
    )
    assert make_thumbnails(ImageFiles("nowhere", ["a.png"] * 120, 8), table) == {}


def test_unknown_truth_leaves_no_truth_file(tmp_path: Path) -> None:
    data = replace(synthetic(), true_labels=None)
    run = run_config(RunConfig("synthetic", method="erm", epochs=1), tmp_path, data)
    assert run.truth is None and "precision" not in run.summary
    assert run.summary["noise"]["realised"] is None


def test_verdict_table_by_hand() -> None:
    data = synthetic(num_classes=2, per_class=2)
    scores = torch.tensor([0.1, 2.0, torch.nan, 0.6])
    verdict = Verdict(
        keep=torch.tensor([True, False, True, True]),
        scores=scores,
        losses=scores + 1,
        labels=data.train.labels,
        threshold=1.5,
        percentile=10.0,
        epoch=3,
        counterfactual=Counterfactual.from_losses(torch.tensor([0.5, 1.0, 1.5, 3.0]), "weights"),
    )
    predictions = Predictions(
        torch.tensor([1, 0, 1, 0]), torch.full((4,), 0.75), torch.zeros(4), torch.ones(4).bool()
    )
    table = verdict_table(data, verdict, predictions).to_arrow().to_pydict()
    assert table["score"] == pytest.approx([0.1, 2.0, None, 0.6])
    assert table["loss"] == pytest.approx([1.1, 3.0, None, 1.6])
    assert table["counterfactual_percentile"] == [0.0, 75.0, None, 25.0]
    assert table["keep"] == [True, False, True, True] and table["threshold"] == [1.5] * 4
    assert table["suggested_label"] == [1, 0, 1, 0] and table["suggested_confidence"] == [0.75] * 4
    assert "reason" not in table
    vouched = replace(data, decided=torch.tensor([False, True, False, True]))
    table = verdict_table(vouched, verdict, predictions).to_arrow().to_pydict()
    assert table["keep"] == [True] * 4 and verdict.keep.tolist() == [True, False, True, True]
    assert table["reason"] == [None, "decided by a person", None, "decided by a person"]
    both = replace(vouched, pictures=torch.tensor([0, 0, -1, -1]))
    table = verdict_table(both, verdict, predictions).to_arrow().to_pydict()
    assert table["keep"] == [False, True, True, True]
    assert table["reason"][:2] == ["same picture, another label", "decided by a person"]


def test_describe_device() -> None:
    described: dict[str, Any] = describe_device(torch.device("cpu"))
    assert described["device"] == "cpu" and described["threads"] >= 1 and described["device_name"]


def test_of_few_images_the_contrast_is_told_only_where_a_doubt_quotes_it() -> None:
    def describe(examples: int, contrast: float) -> dict[str, Any]:
        keep = torch.ones(examples, dtype=torch.bool)
        verdict = Verdict(
            keep=keep,
            scores=torch.zeros(examples),
            losses=torch.zeros(examples),
            labels=torch.zeros(examples, dtype=torch.int64),
            threshold=1.5,
            percentile=10.0,
            epoch=3,
            counterfactual=Counterfactual.from_losses(torch.ones(4), "sentinels"),
            noise_rate=(0.1, 0.0, 0.2),
            contrast=contrast,
            contrast_needed=8.5,
        )
        return describe_verdict(verdict, ["a", "b"])

    few, doubted = describe(100, 20.0), describe(100, 3.0)
    assert few["contrast"] is None and few["doubt"] is None
    assert doubted["contrast"] == 3.0 and "(contrast 3.00" in doubted["doubt"]
    assert few["estimated_noise"] is doubted["estimated_noise"] is None
    assert describe(300, 20.0)["contrast"] == 20.0
