"""Sentinels: examples whose label is replaced at random until the verdict.

What loss would a random label have if it were in the training set? Plant a few and see. Head,
optimiser, augmentation and memorisation then all affect the counterfactual as they do the labels.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from oddly.core.indexed import IndexedDataset
from oddly.core.ledger import LossLedger
from oddly.core.observed import find_occurring
from oddly.core.ranks import merge_latest
from oddly.core.sentinels.cut import estimate_mixture, known, known_in_order
from oddly.core.sentinels.learnt import SURE, contrast
from oddly.errors import InputError

SHARE = 0.02  # share of the examples to plant, but …
# … at least what a percentile needs and at most what it can use (why 300 and not 100:
# docs/constants.md, "How many are planted") …
FEWEST, MOST = 300, 5_000
LARGEST_SHARE = 0.1  # … and never more than this share
LATEST = 0.8  # share of all epochs after which the automatic E comes at the latest
EARLIEST = 1 / 3  # before this share of the epochs, a good separation may still get better
GOOD_F1 = 0.97  # from this estimated F1 on, waiting gains nothing
FALLEN = 0.9  # two epochs below this share of the best separation: memorising has begun
SHARPNESS = 8  # an epoch's weight is its separation to this power
LEAST = 1e-3  # lower bound on a separation, for the weights
FEW_ABSENT = 0.1  # share planted whose classes may have no examples: left out in the end
SALT = 0x5E97
HUGE = 1e30  # larger than any logit of a network that works


class Scored(NamedTuple):
    """Examples with their scores: how much the network contradicts the label."""

    scores: Tensor  # (N,) how far the best other class lies above the label
    labels: Tensor  # (N,)
    rivals: Tensor  # (N,) that other class

    def known(self) -> Scored:
        """Those that have a score."""
        finite = self.scores.isfinite()  # a class that is masked out has none
        return Scored(*(column[finite] for column in self))


class Relabelled:
    """A few random examples out of N, each with a fixed label other than its given one.

    That label is the given one plus a shift, modulo the number of classes. The ledger records what
    is observed with it.
    """

    few_absent = 0.0  # share of the labels whose classes may have no examples

    def __init__(
        self, num_examples: int, count: int, num_classes: int, statistic: str, seed: int
    ) -> None:
        self.num_classes = self.occurring = num_classes
        # Not the plain seed: code that corrupts labels with that seed would pick these examples.
        generator = torch.Generator().manual_seed(seed + SALT)
        chosen = torch.randperm(num_examples, generator=generator)[:count]
        self.indices = chosen.sort().values  # (S,)
        self.shifts = torch.randint(1, num_classes, (count,), generator=generator)  # (S,)
        self.ledger = LossLedger(count, statistic)

    def find(self, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """For a batch of indices: places among the chosen, which rows are chosen, label shifts."""
        index = index.to(torch.int64)  # older versions of torch insist on the type of `indices`
        if self.indices.device != index.device:
            self.indices, self.shifts = self.indices.to(index.device), self.shifts.to(index.device)
        place = torch.searchsorted(self.indices, index).clamp_(max=len(self.indices) - 1)
        hit = self.indices[place] == index
        return place, hit, torch.where(hit, self.shifts[place], 0)

    def keep_to_classes(self, given: Tensor) -> bool:
        """Choose others for labels that do not occur among `given` (N,), if there are too many.

        Whether there were; what was recorded with those is then forgotten.
        """
        classes = find_occurring(given, self.num_classes)  # (K',)
        own, shifts = given[self.indices.to(given.device)].cpu().long(), self.shifts.cpu()
        absent = (own >= 0) & ~torch.isin((own + shifts) % self.num_classes, classes)
        self.occurring = len(classes)
        if float(absent.double().mean()) <= self.few_absent:
            return False
        steps = 1 + (shifts - 1) % (len(classes) - 1)
        other = classes[(torch.searchsorted(classes, own) + steps) % len(classes)]
        moved = torch.where(absent, (other - own) % self.num_classes, shifts)
        self.shifts = moved.to(self.shifts.device)
        self.ledger.forget()
        return True

    def state_dict(self) -> dict[str, Any]:
        chosen = {"indices": self.indices, "shifts": self.shifts, "occurring": self.occurring}
        return {**chosen, "ledger": self.ledger.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.indices, self.shifts = state["indices"].clone(), state["shifts"].clone()
        self.occurring = state.get("occurring", self.num_classes)  # older checkpoints do not say
        self.ledger.load_state_dict(state["ledger"])


class Sentinels(Relabelled):
    """The examples whose label is replaced in training, and their scores.

    Scores are margins: how far the best other class lies above the label (negative: the network
    predicts the label, which for a sentinel means that it has memorised it).
    """

    few_absent = FEW_ABSENT

    def __init__(
        self,
        num_examples: int,
        num_classes: int,
        statistic: str,
        seed: int,
        dataset: IndexedDataset | None = None,
    ) -> None:
        """`dataset` then returns the planted labels; without it, see `plant`."""
        super().__init__(num_examples, how_many(num_examples), num_classes, statistic, seed)
        self._dataset, self._checked = dataset, dataset is None
        self._plant_in_dataset()
        self.rivals = torch.full((len(self.indices) + 1,), -1)  # last observed; one spare slot
        self.separations: list[float] = []
        """Per finished epoch: how far apart sentinels and other examples were (`separation`)."""

    def plant(self, index: Tensor, labels: Tensor) -> Tensor:
        """The labels to train with: the given ones, except for sentinels."""
        _, _, shift = self.find(index.to(labels.device, non_blocking=True))
        return (labels + shift) % self.num_classes

    def observe(self, index: Tensor, logits: Tensor, labels: Tensor) -> tuple[Scored, Tensor]:
        """Record the sentinels' scores; return the scores and losses of all given labels.

        The given label of a sentinel is judged as if the network had not trained on the example:
        its planted label does not count as a rival (unless only two classes occur).
        """
        place, planted, shift = self.find(index)
        labels = labels.long()  # two classes may be given as bool
        given = (labels - shift) % self.num_classes
        own, other = logits.gather(1, torch.stack((given, labels), 1)).unbind(1)
        values, classes = logits.topk(min(3, self.num_classes), 1)  # (B, 3): two may be excluded
        is_rival = classes != labels[:, None]
        best, rivals = _first(is_rival, values, classes)
        slots = self.ledger.record(place, best - other, where=planted)
        if self.rivals.device != logits.device:
            self.rivals = self.rivals.to(logits.device)
        self.rivals.scatter_(0, slots, rivals)
        not_given = classes != given[:, None]
        is_rival = is_rival & not_given if self.occurring > 2 else not_given
        best, rivals = _first(is_rival, values, classes)
        return Scored(best - own, given, rivals), logits.logsumexp(1) - own

    def check_loader(self, given: Tensor) -> None:
        """After the first epoch, check that the observed labels (N,) came from our dataset."""
        if self._dataset is not None and not self._checked:
            self._checked = True
            self._dataset.check_observed(given[self.indices.to(given.device)].cpu())

    def close_epoch(self, scores: Tensor) -> float:
        """Close the epoch in which the examples had these scores (N,); returns its weight.

        The better an epoch separates sentinels from the rest, the more it counts. Epochs before the
        network knows the classes, or after it has memorised the labels, hardly count.
        """
        merge_latest(self.rivals[:-1], ~self.ledger.current.isnan())
        self.ledger.merge()
        self.separations.append(separation(self.ledger.current, scores))
        weight = max(self.separations[-1], LEAST) ** SHARPNESS
        self.ledger.close_epoch(weight)
        return weight

    def keep_to_classes(self, given: Tensor) -> bool:
        """The same; epochs with labels that do not occur say nothing about when to prune."""
        if not super().keep_to_classes(given):
            return False
        self.separations = [0.0] * len(self.separations)
        self._plant_in_dataset()
        return True

    def say_now(self, epochs: int, scores: Tensor) -> bool:
        """Whether it is time to prune, given the examples' scores so far (N,).

        The separation between sentinels and other examples grows while the network learns classes,
        and shrinks while it memorises labels. It is time once it shrinks, or if after a third of
        the epochs it can hardly improve, or if few epochs are left.
        """
        finished = len(self.separations)
        if finished >= max(1, math.floor(LATEST * epochs)):
            return True
        best = max(self.separations)
        if best > 0 and max(self.separations[-2:]) < FALLEN * best:
            return True
        return finished >= EARLIEST * epochs and self._finds_nearly_all(scores)

    def scored(self, given: Tensor) -> Scored:
        """The observed sentinels with their planted labels; `given` (N,) are all given labels."""
        indices, shifts = self.indices.to(given.device), self.shifts.to(given.device)
        planted = (given[indices].long() + shifts) % self.num_classes
        columns = (self.ledger.values, planted, self.rivals[:-1])
        return Scored(*(column.cpu() for column in columns)).known()

    def state_dict(self) -> dict[str, Any]:
        more = {"rivals": self.rivals, "separations": list(self.separations)}
        return {**super().state_dict(), **more}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.rivals, self.separations = state["rivals"].clone(), list(state["separations"])
        self._plant_in_dataset()
        self._checked = True  # labels seen before the restore came from another process

    def _plant_in_dataset(self) -> None:
        if self._dataset is not None:
            self._dataset.plant(self.indices, self.shifts, self.num_classes)

    def _finds_nearly_all(self, scores: Tensor) -> bool:
        ordered, planted = known_in_order(scores), known_in_order(self.ledger.values)
        # To a network that has hardly learnt, all labels look random: it would seem to find all.
        if not len(ordered) or not len(planted) or contrast(planted, ordered) < SURE:
            return False
        return estimate_mixture(ordered, planted, self.occurring).best_cut().f1 >= GOOD_F1


def _first(wanted: Tensor, values: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
    """The value and class of the first wanted column in each row."""
    column = wanted.int().argmax(1, keepdim=True)  # argmax returns the first maximum
    return values.gather(1, column)[:, 0], classes.gather(1, column)[:, 0]


def separation(planted: Tensor, scores: Tensor) -> float:
    """How far the sentinels' scores lie above those of right labels, in standard deviations.

    The lower quartile of all examples stands for right labels, so this works even if most labels
    are wrong. 0 if nothing was observed.
    """
    planted, scores = known(planted), known(scores)
    if not len(planted) or not len(scores):
        return 0.0
    spread = (planted.var(correction=0) + scores.var(correction=0)) / 2
    quartile = scores.kthvalue(1 + (len(scores) - 1) // 4).values
    return float((planted.mean() - quartile) / spread.sqrt().clamp(min=1e-12))


def how_many(num_examples: int) -> int:
    """2 %, at least 300, at most 5,000, never more than a tenth of the examples."""
    wanted = min(max(FEWEST, round(SHARE * num_examples)), MOST)
    return max(1, min(wanted, int(LARGEST_SHARE * num_examples)))


def check_observed(examples: Tensor, sentinels: Tensor) -> None:
    """Refuse scores that cannot be judged: none at all, or absurdly large ones."""
    if not len(sentinels):  # drop_last may leave some out, but not all
        raise InputError("no sentinel was observed, or the model's outputs are NaN")
    if float(sentinels.abs().max()) > HUGE:  # adding shifts would overflow
        raise InputError(f"scores are beyond {HUGE:g}: check the model's outputs")
    if not len(examples):
        raise InputError("no example was observed, or the model's outputs are NaN")
