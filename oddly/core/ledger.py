"""One loss statistic per example, filled by index while training goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from oddly.core.ranks import merge_mean
from oddly.errors import InputError

STATISTICS = ("last", "ema")
CHUNK = 2**22  # examples folded at a time, so that closing an epoch needs little extra memory


class LossLedger:
    """Call `record` each step and `close_epoch` each epoch, then read `values`.

    Statistics over epochs of an example's losses l_e (e is the epoch):
    `last`: v = l_e (the paper); `ema`: their mean with fading weights w_e·d^(now - e), where w_e is
    the weight passed to `close_epoch` (1 by default). If an epoch misses an example, its value
    stays as it is, and counts afterwards as if it had been seen. Two floats per example; NaN means
    "not seen". Everything happens on the device of the losses, and no step waits for it.
    """

    def __init__(self, num_examples: int, statistic: str = "ema", decay: float = 0.9) -> None:
        if statistic not in STATISTICS:
            raise InputError(f"statistic must be one of {', '.join(STATISTICS)}, got '{statistic}'")
        if not 0 <= decay < 1:
            raise InputError(f"decay must be in [0, 1), got {decay}")
        self.num_examples, self.statistic, self.decay = num_examples, statistic, decay
        self._current = torch.empty(0)  # this epoch's losses, one spare slot for bad indices
        self._values = torch.empty(0)
        self._invalid = torch.zeros((), dtype=torch.int64)
        self._weight = 0.0  # of all epochs so far, faded
        self._merged = False  # whether `current` is what all ranks together have seen

    @torch.no_grad()
    def record(self, index: Tensor, losses: Tensor, where: Tensor | None = None) -> Tensor:
        """Record the losses (B,) of examples `index` (B,); within an epoch the last one counts.

        If an example occurs twice in one call on a GPU, either may count: the order is not fixed.
        `where` (B,) picks rows. An index out of range raises at once on CPU; on a GPU, where
        a check would stall the device, it is ignored and `close_epoch` raises. Returns the
        slots written to: `index` on the losses' device, slot N for rows not recorded.
        """
        self._allocate(losses.device)
        index = index.to(losses.device, torch.int64, non_blocking=True)
        if losses.device.type == "cpu":
            self._check(index)
        else:
            valid = (index >= 0) & (index < self.num_examples)
            self._invalid += valid.numel() - valid.sum()
            index = torch.where(valid, index, self.num_examples)
        if where is not None:
            index = torch.where(where, index, self.num_examples)
        # scatter_ is three times faster than `[index] =`, and always in order on a CPU.
        self._current.scatter_(0, index, losses.detach().float())
        self._merged = False
        return index

    @torch.no_grad()
    def merge(self) -> None:
        """Average this epoch's losses over the ranks that saw an example, if there are several."""
        if not self._merged:
            merge_mean(self.current)
        self._merged = True

    @torch.no_grad()
    def close_epoch(self, weight: float = 1.0) -> None:
        """Fold this epoch's losses into the statistic, merged across ranks when there are any.

        `weight` > 0 is the weight of this epoch relative to others; only `ema` uses it.
        """
        self.merge()
        if invalid := int(self._invalid):
            self._invalid.zero_()
            raise IndexError(
                f"{invalid} indices passed to observe() are outside 0..{self.num_examples - 1}"
            )
        self._weight = self.decay * self._weight + weight
        for part in self._chunks():
            new, old = self._current[part], self._values[part]
            mixed = new if self.statistic == "last" else old.lerp(new, weight / self._weight)
            mixed = torch.where(old.isnan(), new, mixed)
            old.copy_(torch.where(new.isnan(), old, mixed))
        self._current.fill_(torch.nan)
        self._merged = False

    @property
    def is_empty(self) -> bool:
        """Whether no epoch was closed, or all were forgotten."""
        return not self._weight

    def forget(self) -> None:
        """Start again, as if nothing had been recorded."""
        for losses in (self._current, self._values):
            losses.fill_(torch.nan)
        self._weight = 0.0

    @property
    def current(self) -> Tensor:
        """This epoch's losses so far, (N,); NaN if not seen in this epoch."""
        self._allocate(self._current.device)
        return self._current[:-1]

    @property
    def values(self) -> Tensor:
        """The statistic, (N,); NaN if an example was never seen."""
        self._allocate(self._values.device)
        return self._values

    def state_dict(self) -> dict[str, Any]:
        kept = {"current": self._current, "values": self._values, "weight": self._weight}
        return {"examples": self.num_examples, "statistic": self.statistic, **kept}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        # Older checkpoints do not store the number, and have no values before the first loss.
        examples = state.get("examples", len(state["values"]) or self.num_examples)
        if examples != self.num_examples:
            raise InputError(f"the saved ledger has {examples} examples, not {self.num_examples}")
        if (statistic := state.get("statistic", self.statistic)) != self.statistic:
            raise InputError(f"the saved ledger has statistic {statistic}, not {self.statistic}")
        self._current, self._values = state["current"].clone(), state["values"].clone()
        self._weight, self._merged = state["weight"], False

    def _chunks(self) -> Iterator[slice]:
        for start in range(0, self.num_examples, CHUNK):
            yield slice(start, min(start + CHUNK, self.num_examples))

    def _allocate(self, device: torch.device) -> None:
        """Allocate on the device of the first losses; move along if the losses do."""
        if not len(self._current):
            self._current = torch.full((self.num_examples + 1,), torch.nan, device=device)
            self._values = torch.full((self.num_examples,), torch.nan, device=device)
        if self._current.device != device or self._invalid.device != device:
            for name in ("_current", "_values", "_invalid"):
                setattr(self, name, getattr(self, name).to(device))

    def _check(self, index: Tensor) -> None:
        if not index.numel():
            return
        low, high = (bound.item() for bound in index.aminmax())
        if low < 0 or high >= self.num_examples:
            raise IndexError(
                f"index {low if low < 0 else high} is outside 0..{self.num_examples - 1}"
            )
