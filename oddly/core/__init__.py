"""The algorithm.

Read in this order: head, ranks, counterfactual, indexed, ledger, observed, backlog, sampler, rule,
warn, sentinels, verdict, judging, stopwatch, denoiser, loader, copies.
"""

from oddly.core.counterfactual import Counterfactual, draw_losses
from oddly.core.denoiser import Denoiser
from oddly.core.head import find_head
from oddly.core.indexed import IndexedDataset
from oddly.core.judging import judge
from oddly.core.ledger import LossLedger
from oddly.core.loader import denoise
from oddly.core.sampler import KeepSampler
from oddly.core.verdict import Verdict

__all__ = [
    "Counterfactual",
    "Denoiser",
    "IndexedDataset",
    "KeepSampler",
    "LossLedger",
    "Verdict",
    "denoise",
    "draw_losses",
    "find_head",
    "judge",
]
