"""Two real processes under torchrun: shares, merged losses, and one verdict for all."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from oddly.core.ledger import STATISTICS
from tests.core import ranks

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each of the two ranks found."""
    folder = tmp_path_factory.mktemp("ranks")
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [sys.executable, *launcher, str(ROOT / "tests/core/ranks.py"), str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(2)]


def test_losses_are_averaged_over_the_ranks_that_saw_an_example(
    results: list[dict[str, Any]],
) -> None:
    for result in results:
        assert result["by_hand"][:3].tolist() == [2.5, 5.0, 7.0]
        assert math.isnan(result["by_hand"][3])


@pytest.mark.parametrize("statistic", STATISTICS)
def test_shares_are_equal_and_cover_what_is_kept(
    results: list[dict[str, Any]], statistic: str
) -> None:
    first, second = (result[statistic] for result in results)
    kept = first["keep"].nonzero().flatten().tolist()
    for epoch, (one, other) in enumerate(zip(first["shares"], second["shares"], strict=True)):
        expected = kept if epoch >= ranks.PRUNE_AFTER else range(ranks.NUM_EXAMPLES)
        assert len(one) == len(other) == math.ceil(len(expected) / 2)
        assert set(one) | set(other) == set(expected)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_both_ranks_reach_the_verdict_of_a_single_process(
    results: list[dict[str, Any]], statistic: str
) -> None:
    alone = ranks.denoise(statistic)
    assert 0 < alone["keep"].sum() < ranks.NUM_EXAMPLES
    for result in results:
        assert torch.equal(result[statistic]["keep"], alone["keep"])
        assert torch.equal(result[statistic]["labels"], alone["labels"])
        assert result[statistic]["threshold"] == alone["threshold"]
        assert result[statistic]["spared"] == alone["spared"]
        torch.testing.assert_close(result[statistic]["losses"], alone["losses"])


@pytest.mark.parametrize(("name", "prune_after"), [("fixed", 3), ("automatic", None)])
def test_with_sentinels_too_both_ranks_reach_the_verdict_of_a_single_process(
    results: list[dict[str, Any]], name: str, prune_after: int | None
) -> None:
    alone = ranks.denoise_planting(prune_after)
    assert alone["epoch"] == (prune_after or 6)  # neither the earliest (4) nor the latest (9)
    assert 0 < alone["keep"].sum() < ranks.MANY
    for result in results:
        found = result[name]
        assert torch.equal(found["keep"], alone["keep"])
        assert torch.equal(found["labels"], alone["labels"])
        for key in ("scores", "counterfactual", "losses"):
            torch.testing.assert_close(found[key], alone[key])
        for key in ("threshold", "noise_rate", "memorised"):
            assert found[key] == pytest.approx(alone[key]), key
        assert (found["epoch"], found["spared"]) == (alone["epoch"], alone["spared"])
