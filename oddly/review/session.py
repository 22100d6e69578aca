"""A review under way: suspects, decisions and pictures together, as the page sees them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from oddly.errors import InputError
from oddly.pictures import Unreadable
from oddly.records import Run
from oddly.review.decisions import ACTIONS, FILE_NAME, Decision, Decisions
from oddly.review.images import NoImages, PictureSource, find_images
from oddly.review.suspects import Suspect, Suspects

OPEN, DECIDED, SKIPPED = 0, 1, 2
SHOWN = {  # by state: whether it is shown
    "open": np.array([True, False, False]),
    "decided": np.array([False, True, False]),
    "skipped": np.array([False, False, True]),
    "all": np.array([True, True, True]),
}
PREFETCHED = 3
BLOCK = 4096  # states looked through at a time


class BadRequest(Exception):
    """An invalid request from the page; the message is one line."""


@dataclass(frozen=True)
class Card:
    """One suspect as the page shows it."""

    rank: int
    id: str
    given: str
    suggested: str | None
    """None if the network predicts the given label, or if there is no prediction."""
    agrees: bool
    """Whether the network predicts the given label."""
    confidence: float | None
    words: str
    image: str
    """The address of its picture."""
    revision: int
    """To be sent back with a decision."""
    action: str | None
    """The current decision: keep, suggestion, relabel, remove, skip or None."""
    label: str | None


@dataclass(frozen=True)
class Progress:
    """How far the review is."""

    total: int
    decided: int
    skipped: int
    undo: Decision | None
    """The newest decision, from any tab, which an undo would revert."""


class Session:
    """One review of one run."""

    def __init__(
        self,
        run: Run,
        top: int | None = None,
        images: Path | None = None,
        decisions: Path | None = None,
    ) -> None:
        self.run = run
        # Part of every picture's address, because browsers cache pictures and the next review on
        # this port has other pictures with the same numbers.
        self._key = secrets.token_hex(4)
        self.suspects = Suspects.read(run, top)
        ids = self.suspects.ids
        self.images: PictureSource = find_images(run, ids[0], images) if ids else NoImages()
        self._state = np.zeros(len(ids), np.uint8)
        self.decisions = Decisions(decisions or run.path / FILE_NAME, self._mark)
        check_labels(self.decisions, self.suspects.class_names)

    def about_pictures(self) -> str | None:
        """Why the first suspect has no picture, as a hint in the terminal; None if it has one."""
        if not self.suspects.ids:
            return None
        try:
            self.images.read(self.suspects.ids[0])
        except Unreadable as reason:
            return f"no picture of {self.suspects.ids[0]}: {reason}"
        return None

    def overview(self) -> dict[str, Any]:
        """What the page needs once, at the start."""
        self.decisions.refresh()
        return {
            "review": self._key,
            "run": str(self.run.path),
            "data": Path(str(self.run.config.get("data") or "")).name,
            "examples": self.suspects.examples,
            "classes": len(self.suspects.class_names),
            "doubt": " ".join(self.run.notes) or None,
            **self.step(self.find(-1, "open")),
        }

    def step(self, rank: int | None) -> dict[str, Any]:
        """A suspect (None: no more), what to prefetch, and the progress."""
        upcoming = [] if rank is None else islice(self._following(rank, "open"), PREFETCHED)
        return {
            "card": None if rank is None else self.card(rank),
            "prefetch": [self._image(next_rank) for next_rank in upcoming],
            "progress": asdict(self.progress()),
        }

    def card(self, rank: int) -> dict[str, Any]:
        suspect = self._suspect(rank)
        decision = self.decisions.current(suspect.id)
        card = Card(
            rank=rank,
            id=suspect.id,
            given=suspect.given,
            suggested=None if suspect.suggested == suspect.given else suspect.suggested,
            agrees=suspect.suggested == suspect.given,
            confidence=suspect.confidence,
            words=suspect.words,
            image=self._image(rank),
            revision=self.decisions.revision(suspect.id),
            action=decision.action if decision else None,
            label=decision.label if decision else None,
        )
        return asdict(card)

    def cards(self, start: int, count: int, show: str) -> dict[str, Any]:
        """A page of the grid: `count` suspects of the kind asked for, from rank `start` on."""
        self.decisions.refresh()
        ranks = list(islice(self._following(start - 1, show), count + 1))
        return {
            "cards": [self.card(rank) for rank in ranks[:count]],
            "next": ranks[count] if len(ranks) > count else None,
            "progress": asdict(self.progress()),
        }

    def find(self, after: int, show: str) -> int | None:
        """The next suspect of a kind after a rank; starts again from the top if there is none."""
        return next(self._following(after, show), next(self._following(-1, show), None))

    def decide(self, rank: int, action: str, label: str | None, seen: int) -> Decision:
        """Write a decision; it is on disk on return."""
        suspect = self._suspect(rank)
        if action == "keep":
            label = suspect.given
        elif action == "suggestion":
            label = suspect.suggested
            if label is None:
                raise BadRequest("this image has no suggestion")
        elif action == "relabel":
            if label not in self.suspects.class_names:
                raise BadRequest("no such class")
            if label == suspect.given:
                action = "keep"  # the label does not change
        elif action in ACTIONS:
            label = None
        else:
            raise BadRequest("no such action")
        return self.decisions.decide(suspect.id, action, label, seen)

    def undo(self, revision: int) -> int | None:
        """Undo a decision; returns the rank of its suspect."""
        return self.suspects.rank_of.get(self.decisions.undo(revision))

    def progress(self) -> Progress:
        return Progress(
            total=len(self._state),
            decided=int(np.count_nonzero(self._state == DECIDED)),
            skipped=int(np.count_nonzero(self._state == SKIPPED)),
            undo=self.decisions.last(self.suspects.rank_of),
        )

    def _suspect(self, rank: int) -> Suspect:
        if not 0 <= rank < len(self.suspects):
            raise BadRequest("no such suspect")
        return self.suspects[rank]

    def _image(self, rank: int) -> str:
        return f"/image/{rank}?review={self._key}"

    def _mark(self, id: str, decision: Decision | None) -> None:
        rank = self.suspects.rank_of.get(id)
        if rank is not None:
            skipped = decision is not None and decision.action == "skip"
            self._state[rank] = SKIPPED if skipped else DECIDED if decision else OPEN

    def _following(self, after: int, show: str) -> Iterator[int]:
        """Ranks of a kind after `after`, looked up block by block."""
        if show not in SHOWN:
            raise BadRequest("no such filter")
        for start in range(max(after + 1, 0), len(self._state), BLOCK):
            # Read the states once, because other threads may change them.
            wanted = SHOWN[show][self._state[start : start + BLOCK]]
            yield from (start + int(place) for place in np.flatnonzero(wanted))


def check_labels(decisions: Decisions, class_names: list[str]) -> None:
    """Refuse a file of decisions with other classes, which belongs to another dataset."""
    labels = {decision.label for decision in decisions.standing() if decision.label is not None}
    if unknown := labels - set(class_names):
        raise InputError(
            f"{decisions.path} contains class '{min(unknown)}', which this run does not have;"
            " move the file away to start over"
        )
