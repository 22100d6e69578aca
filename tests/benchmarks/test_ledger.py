"""The ledger benchmark at a small size: right figures, not fast ones."""

from __future__ import annotations

import json
import sys

import pytest
import torch
from torch.nn import functional as F

from oddly.benchmarks import ledger
from oddly.benchmarks.ledger import BATCH, BLOCK, CLASSES, draw_batch, prune_many, run_alone
from oddly.errors import InputError

EXAMPLES = BLOCK + 1000  # more than one block, the last one not whole


def test_measures_updates_and_pruning() -> None:
    pytest.importorskip("aum", reason='needs the extra "bench"')
    figures = ledger.measure(examples=EXAMPLES, repeats=5, threads=1)
    assert json.loads(json.dumps(figures)) == figures
    assert figures["speedup"] == pytest.approx(
        figures["aum_update_microseconds"] / figures["update_microseconds"]
    )
    assert figures["update_microseconds"] > 0 and figures["batch_size"] == BATCH
    assert figures["examples"] == EXAMPLES and figures["prune_threads"] == 1
    assert 0 < figures["start_gigabytes"] <= figures["peak_gigabytes"] < 4
    assert figures["prune_seconds"] > 0 and figures["cpu_count"] >= 1


def test_every_example_is_recorded_and_the_denied_ones_go() -> None:
    before = torch.get_num_threads()
    try:
        figures = prune_many(EXAMPLES, before, "weights")
    finally:
        torch.set_num_threads(before)
    # Every block repeats the same losses: those far above log K were denied their label.
    logits, labels = draw_batch(BLOCK)
    denied = F.cross_entropy(logits, labels, reduction="none") > 2.0
    expected = int(denied.sum()) + int(denied[: EXAMPLES - BLOCK].sum())
    assert figures["removed_fraction"] == pytest.approx(expected / EXAMPLES, abs=0.02)


def test_batch_denies_the_share_of_noise() -> None:
    logits, labels = draw_batch(20_000)
    assert logits.shape == (20_000, CLASSES) and labels.max() == CLASSES - 1
    assert (logits.argmax(1) != labels).float().mean() == pytest.approx(0.4, abs=0.02)


def test_peak_memory_is_what_the_ledger_holds() -> None:
    many = 10_000_000
    figures = run_alone(prune_many, many, 1, "weights")
    grown = 1e9 * (figures["peak_gigabytes"] - figures["start_gigabytes"])
    # Two floats, a two-byte label and a one-byte verdict per example, and some working memory.
    assert 11 * many < grown < 30 * many + 3e8


def test_missing_aum_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aum", None)
    with pytest.raises(InputError, match=r"oddly\[bench\]"):
        ledger.measure(examples=10)
