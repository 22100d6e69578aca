"""How fast the ledger is, next to the `aum` package's, and its memory at 100 million examples.

Paper: says only that ODD adds "almost zero computational overhead".
Command: oddly benchmark ledger
Cost: about half a minute on two CPU cores.
Numbers to match, ours, on two cores: speedup ≥ 50, peak_gigabytes ≤ 2 (no epoch's order is drawn),
prune_seconds ≤ 5. They are for the paper's losses; those for margins and sentinels, our default,
are printed as `sentinels_…`. What was measured: docs/default.md#what-it-costs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor, nn

from oddly.core import Denoiser
from oddly.errors import InputError

CLASSES, FEATURES, NOISE = 10, 64, 0.4
BATCH = 1024  # examples of the update that is compared
DATASET = 50_000  # examples of the ledger it goes into
BLOCK = 2**18  # examples recorded at a time on the way to 100 million
BLOCKS, WARM_UP_REPEATS = 10, 5
BOTH_WAYS = ("speedup", "update_microseconds", "peak_gigabytes", "prune_seconds")


def measure(
    examples: int = 100_000_000, repeats: int = 30, threads: int | None = 2
) -> dict[str, Any]:
    """One update against AUM's, then record, judge and prune `examples` in a process of its own."""
    # Imported here: the measured process would otherwise carry the whole engine along.
    from oddly.engine.outcome import describe_device
    from oddly.records import environment

    calculator, threads = find_aum(), threads or torch.get_num_threads()
    by_sentinels = {
        **compare_updates(calculator, repeats, "sentinels"),
        **run_alone(prune_many, examples, threads, "sentinels"),
    }
    return {
        **compare_updates(calculator, repeats, "weights"),
        **run_alone(prune_many, examples, threads, "weights"),
        **{f"sentinels_{name}": by_sentinels[name] for name in BOTH_WAYS},
        **environment(describe_device(torch.device("cpu"))),
    }


def find_aum() -> Callable[[str], Any]:
    """The `AUMCalculator` of the aum package, which is not a dependency."""
    try:
        from aum import AUMCalculator
    except ImportError:
        raise InputError(
            'this benchmark compares with the aum package: pip install "oddly[bench]"'
        ) from None
    calculator: Callable[[str], Any] = AUMCalculator
    return calculator


def compare_updates(
    calculator: Callable[[str], Any], repeats: int, counterfactual: str
) -> dict[str, Any]:
    """Time both with the same logits; ours in its most expensive epoch, which records labels too.

    Blocks of calls take turns, so that both run warm and a busy machine affects both. On one
    thread, because waking up a thread pool would be timed as well.
    """
    logits, labels = draw_batch(BATCH)
    index = torch.randperm(DATASET, generator=torch.Generator().manual_seed(1))[:BATCH]
    denoiser = Denoiser(DATASET, CLASSES, prune_after=2, counterfactual=counterfactual)
    labels = denoiser.plant(index, labels)
    ours, theirs = [], []
    with TemporaryDirectory() as folder, threads_set_to(1):
        aum, ids = calculator(folder), index.tolist()  # AUM needs a list; not timed
        for _ in range(BLOCKS):
            ours += time_calls(lambda: denoiser.observe(index, logits, labels), repeats)
            theirs += time_calls(lambda: aum.update(logits, labels, ids), repeats)
    return {
        "speedup": median(theirs) / median(ours),
        "update_microseconds": 1e6 * median(ours),
        "aum_update_microseconds": 1e6 * median(theirs),
        "batch_size": BATCH,
        "classes": CLASSES,
        "repeats": len(ours),
        "update_threads": 1,
    }


def time_calls(function: Callable[[], object], repeats: int) -> list[float]:
    """Seconds of each call, after a few that do not count."""
    seconds = []
    for _ in range(WARM_UP_REPEATS + repeats):
        begun = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - begun)
    return seconds[WARM_UP_REPEATS:]


@contextmanager
def threads_set_to(threads: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def run_alone(
    function: Callable[[int, int, str], dict[str, Any]],
    examples: int,
    threads: int,
    counterfactual: str,
) -> dict[str, Any]:
    """Run in a fresh process, so that its peak memory is only that of this function."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            return pool.submit(function, examples, threads, counterfactual).result()
        except BrokenProcessPool:
            raise InputError(
                f"the process with {examples:,} examples was killed, probably out of memory; use"
                " fewer --examples"
            ) from None


def prune_many(examples: int, threads: int, counterfactual: str) -> dict[str, Any]:
    """Observe every example once, in blocks, then end the epoch with a verdict."""
    torch.set_num_threads(threads)
    start_gigabytes = peak_gigabytes()
    head = nn.Linear(FEATURES, CLASSES)
    logits, labels = draw_batch(min(BLOCK, examples))  # every block has the same losses
    denoiser = Denoiser(examples, CLASSES, prune_after=1, counterfactual=counterfactual)
    denoiser.warns = False  # nothing is learnt here
    begun = time.perf_counter()
    for index in (torch.arange(i, min(i + BLOCK, examples)) for i in range(0, examples, BLOCK)):
        planted = denoiser.plant(index, labels[: len(index)])
        denoiser.observe(index, logits[: len(index)], planted)
    recorded = time.perf_counter()
    verdict = denoiser.end_epoch(head)
    pruned = time.perf_counter()
    assert verdict is not None
    return {
        "examples": examples,
        "peak_gigabytes": peak_gigabytes(),
        "start_gigabytes": start_gigabytes,  # Python and torch themselves
        "record_seconds": recorded - begun,
        "prune_seconds": pruned - recorded,
        "prune_threads": threads,
        "removed_fraction": verdict.removed_fraction,
    }


def draw_batch(size: int) -> tuple[Tensor, Tensor]:
    """Logits (B, K) and labels (B,) of a confident network that contradicts a share NOISE."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(CLASSES, (size,), generator=generator)
    wrong = torch.rand(size, generator=generator) < NOISE
    predicted = (labels + wrong.long()) % CLASSES
    logits = 0.3 * torch.randn(size, CLASSES, generator=generator)
    return logits.scatter_add_(1, predicted[:, None], torch.full((size, 1), 3.0)), labels


def peak_gigabytes() -> float:
    """The most memory (10⁹ bytes) this process has held so far."""
    try:
        # Not ru_maxrss, which Linux lets a process inherit from the one that started it.
        status = Path("/proc/self/status").read_text()
    except OSError:  # macOS, where ru_maxrss is in bytes and a process's own
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e9
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    return int(kilobytes) * 1024 / 1e9
