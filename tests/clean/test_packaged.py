"""The packaged backbone on real photographs with wrong labels, defaults only."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import oddly
from oddly.data import DataOptions, load_data
from oddly.records import score_verdict

IMAGES = 1_500


@pytest.mark.slow
def test_wrong_labels_among_cifar_pictures(cifar_root: Path, tmp_path: Path) -> None:
    data = load_data("cifar10", DataOptions(data_dir=cifar_root))
    random = np.random.RandomState(0)
    truth: dict[str, bool] = {}
    for i in random.choice(len(data.train), IMAGES, replace=False):
        true = int(data.train.labels[i])
        given = int(random.randint(10)) if random.rand() < 0.2 else true
        path = tmp_path / "photos" / data.class_names[given] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = data.train.images[i].permute(1, 2, 0).numpy()  # type: ignore[index]
        Image.fromarray(pixels).save(path)
        truth[f"{data.class_names[given]}/{i}.png"] = given != true
    run = oddly.clean(tmp_path / "photos", tmp_path / "run", device="cpu", image_size=128)
    wrong = run.verdicts.id.map(truth).to_numpy(bool)
    scores = score_verdict(run.verdicts.keep.to_numpy(), run.verdicts.score.to_numpy(), wrong)
    print(run.summary["seconds"], scores)
    assert scores["f1"] is not None and scores["f1"] >= 0.75
    assert scores["average_precision"] is not None and scores["average_precision"] >= 0.88
    noise = run.summary["estimated_noise"]
    assert noise["low"] - 0.05 <= wrong.mean() <= noise["high"] + 0.05
