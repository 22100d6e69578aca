"""Images of no class: which labels they get, and a row of the script on real ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evidence import foreign
from evidence.foreign import ALIKE, mislabel
from tests.evidence.made import blobs
from tests.evidence.test_scripts import names, stored_row


def test_foreign_images_get_any_label_and_the_others_keep_theirs() -> None:
    images, foreign_ones = blobs(2_000), np.arange(2_000) % 4 == 0
    given = mislabel("any", images.inputs, images.true, foreign_ones)
    assert (given[~foreign_ones] == images.true[~foreign_ones]).all()
    counts = np.bincount(given[foreign_ones], minlength=10)
    assert counts.min() > 25 and counts.sum() == 500


def test_or_one_of_the_classes_that_they_look_most_like() -> None:
    images, foreign_ones = blobs(2_000), np.arange(2_000) % 4 == 0
    given = mislabel("alike", images.inputs, images.true, foreign_ones)
    assert (given[~foreign_ones] == images.true[~foreign_ones]).all()
    # These blobs are of a class each, so that it is among the three nearest: a third get it.
    assert (given == images.true)[foreign_ones].mean() == pytest.approx(1 / ALIKE, abs=0.06)


@pytest.mark.slow
def test_a_row(cifar_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cleanlab")
    monkeypatch.setattr(foreign, "EXAMPLES", 300)
    row = foreign.make_row("any", 20, 0, cifar_root, tmp_path)
    stored = stored_row("foreign_images.json", "rows", labels="any", foreign=20, seed=0)
    assert names(row) == names({name: stored[name] for name in row})
    assert len(list(tmp_path.glob("images/guest*.png"))) == 60
    assert row["oddly"]["average_precision"] > 0.3  # a fifth are foreign
