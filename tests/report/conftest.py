from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from oddly.records import Run, RunWriter, VerdictTable, score_verdict

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = [f"digit {k}" for k in range(9)] + ["<img src=x onerror=alert(1)>"]


def make_run(
    path: Path, n: int = 1500, epochs: int = 40, prune_after: int = 15, source: str = "weights"
) -> Run:
    """A made-up ODD run with 40 % noise, as the engine would write it.

    From sentinels, scores are margins and both they and the threshold may be negative.
    """
    rng = np.random.default_rng(0)
    true = rng.integers(0, 10, n)
    wrong = rng.random(n) < 0.4
    given = np.where(wrong, (true + rng.integers(1, 10, n)) % 10, true)
    losses = np.where(wrong, rng.gamma(9, 0.5, n), rng.gamma(0.5, 0.5, n)).astype(np.float32)
    draws = rng.gamma(9, 0.5, 50_000)
    scores = losses
    if source == "sentinels":
        draws = rng.normal(0.5, 1.0, 300)
        scores = np.where(wrong, rng.normal(0.5, 1.0, n), rng.normal(-6, 1.5, n)).astype(np.float32)
    threshold = float(np.percentile(draws, 10))
    writer = RunWriter.create(path, {"method": "odd", "data": "digits"}, {"python": "3.12.1"})
    for epoch in range(1, epochs + 1):
        accuracy = 98 - 60 * 0.85**epoch - (6 if epoch <= prune_after else 0)
        row = {"epoch": epoch, "lr": 0.05 * (1 + np.cos(np.pi * epoch / epochs))}
        writer.append_metrics(row | {"test_accuracy": accuracy, "train_loss": 2.3 * 0.9**epoch})
    keep = scores < threshold
    writer.write_verdicts(
        VerdictTable(
            ids=[f"train/{i:05d}.png" for i in range(n)],
            given_labels=given,
            losses=losses,
            scores=scores,
            counterfactual_percentiles=100 * np.searchsorted(np.sort(draws), scores) / len(draws),
            threshold=threshold,
            keep=keep,
            suggested_labels=true,
            suggested_confidences=rng.uniform(0.5, 1, n),
            class_names=NAMES,
        )
    )
    writer.write_truth(true, NAMES, given)
    counts, edges = np.histogram(draws, 60)
    percentiles = {str(p): float(np.percentile(draws, p)) for p in range(101)}
    writer.write_counterfactual(
        {"source": source, "draws": len(draws), "percentile": 10, "threshold": threshold}
        | {"epoch": prune_after, "percentiles": percentiles}
        | {"histogram": {"edges": edges, "counts": counts}}
    )
    summary: dict[str, Any] = {"method": "odd", "data": "digits", "model": "resnet8"}
    summary |= {"epochs": epochs, "test_accuracy": 97.5, "removed_fraction": float((~keep).mean())}
    summary |= {"threshold": threshold, "prune_after": prune_after, "percentile": 10.0}
    summary |= {"seconds": 21.4, "denoise_seconds": 0.013}
    summary |= {"noise": {"kind": "uniform", "rate": 0.4, "realised": float(wrong.mean())}}
    noise = {"rate": 0.3871, "low": 0.36, "high": 0.4123} if source == "sentinels" else None
    summary |= {"estimated_noise": noise, "counterfactual": source}
    writer.finish(summary | score_verdict(keep, scores, wrong))
    return Run(path)


@pytest.fixture
def made_up_run(tmp_path: Path) -> Callable[..., Run]:
    """A maker of made-up runs."""
    return lambda **settings: make_run(tmp_path / "run", **settings)


@pytest.fixture
def open_page(chromium: Browser) -> Iterator[Callable[..., Page]]:
    """Opens a file; at the end nothing was fetched, nothing failed, nothing was alerted."""
    from playwright.sync_api import Request

    pages: list[Page] = []
    wrong: list[str] = []

    def ask(request: Request) -> None:
        if not request.url.startswith(("file:", "data:")) or len(pages) > 1:
            wrong.append(f"asked for {request.url[:80]}")

    def open_it(path: Path, width: int = 1280, height: int = 900, **options: object) -> Page:
        size = {"width": width, "height": height}
        context = chromium.new_context(viewport=size, offline=True, **options)  # type: ignore[arg-type]
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: wrong.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        page.on("dialog", lambda dialog: wrong.append(f"dialog: {dialog.message}"))
        page.on("request", ask)
        page.goto(path.resolve().as_uri())
        pages.append(page)
        return page

    yield open_it
    for page in pages:
        page.context.close()
    assert wrong == []
