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
from oddly.core.ranks import merge_latest
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
        assert result["by_hand"][:4].tolist() == [2.5, 5.0, 7.0, math.inf]
        assert math.isnan(result["by_hand"][4])


def test_the_value_of_the_rank_that_saw_an_example_goes_to_all(
    results: list[dict[str, Any]],
) -> None:
    """Where both did the larger; where nobody did each keeps its own."""
    first, second = (result["latest"] for result in results)
    assert first.tolist() == [9, 6, 3, 8]
    assert second.tolist() == [9, 6, 3, 4]
    assert first.dtype == torch.int16


def test_stopped_in_the_middle_of_an_epoch_all_judge_alike(results: list[dict[str, Any]]) -> None:
    first, second = (result["stopped"] for result in results)
    assert first["epoch"] == second["epoch"] == 3  # the broken-off one counts, for both
    assert (first["threshold"], first["percentile"]) == (second["threshold"], second["percentile"])
    for name in ("keep", "scores", "losses", "labels", "rivals"):
        torch.testing.assert_close(first[name], second[name], rtol=0, atol=0, equal_nan=True)


def test_alone_there_is_nothing_to_merge() -> None:
    column = torch.tensor([1, 2], dtype=torch.int16)
    merge_latest(column, torch.tensor([True, False]))
    assert column.tolist() == [1, 2]


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


@pytest.mark.parametrize("name", [*STATISTICS, "wrong_label"])
def test_both_ranks_reach_the_verdict_of_a_single_process(
    results: list[dict[str, Any]], name: str
) -> None:
    by_weights = name in STATISTICS
    alone = ranks.denoise("weights", name) if by_weights else ranks.denoise(name, "last")
    assert 0 < alone["keep"].sum() < ranks.NUM_EXAMPLES
    for result in results:
        assert torch.equal(result[name]["keep"], alone["keep"])
        assert torch.equal(result[name]["labels"], alone["labels"])
        assert result[name]["threshold"] == pytest.approx(alone["threshold"], rel=1e-6)
        assert result[name]["spared"] == alone["spared"]
        torch.testing.assert_close(result[name]["losses"], alone["losses"])
        torch.testing.assert_close(result[name]["counterfactual"], alone["counterfactual"])


@pytest.mark.parametrize("name", [*STATISTICS, "wrong_label", "fixed", "automatic"])
def test_both_ranks_agree_to_the_last_bit(results: list[dict[str, Any]], name: str) -> None:
    """Or they would sample from different sets from then on."""
    first, second = (dict(result[name]) for result in results)
    assert first.pop("shares") != second.pop("shares")
    for key, value in first.items():
        if isinstance(value, torch.Tensor):
            torch.testing.assert_close(value, second[key], rtol=0, atol=0, equal_nan=True)
        else:
            assert value == second[key], key


@pytest.mark.filterwarnings("ignore:the network has hardly learnt")  # it is a made-up one
@pytest.mark.parametrize(("name", "prune_after"), [("fixed", 3), ("automatic", None)])
def test_with_sentinels_too_both_ranks_reach_the_verdict_of_a_single_process(
    results: list[dict[str, Any]], name: str, prune_after: int | None
) -> None:
    alone = ranks.denoise_planting(prune_after)
    assert alone["epoch"] == (prune_after or 7)  # fallen in 6 and 7; the latest would be 9
    assert 0 < alone["keep"].sum() < ranks.MANY
    for result in results:
        found = result[name]
        assert torch.equal(found["keep"], alone["keep"])
        assert torch.equal(found["labels"], alone["labels"])
        assert torch.equal(found["rivals"], alone["rivals"])
        for key in ("scores", "counterfactual", "losses"):
            torch.testing.assert_close(found[key], alone[key])
        for key in ("threshold", "noise_rate", "separations"):
            assert found[key] == pytest.approx(alone[key], rel=1e-4), key
        assert (found["epoch"], found["spared"]) == (alone["epoch"], alone["spared"])


def test_the_ranks_together_are_to_see_every_example(results: list[dict[str, Any]]) -> None:
    """Each sees 102 of 203, one of them twice; then half of that."""
    for result in results:
        whole, half = result["told"]
        assert whole == []
        assert half == ["101 of 203 examples were not observed in the first epoch"]


def test_the_ranks_tell_each_other_nothing_twice(results: list[dict[str, Any]]) -> None:
    """An average takes two messages, sums and counts. With sentinels: rivals, losses and scores of
    all examples, rivals and scores of the sentinels. With made-up labels too: the given labels."""
    for result in results:
        expected = {"sentinels": 1 + 2 + 2 + 1 + 2 + 1, "weights": 2, "wrong_label": 2 + 2 + 1}
        assert result["messages"] == expected
