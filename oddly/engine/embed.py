"""Each image once through a frozen backbone; afterwards a small head trains on the features."""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor, nn

from oddly.data.base import LabelledData, Recipe, Split
from oddly.data.files import Unread, about_size, about_unreadable, none_readable, without
from oddly.data.images import digest
from oddly.data.source import ImageSource, ImageTensor
from oddly.engine.feature_cache import Embedded, FeatureCache
from oddly.errors import InputError
from oddly.pictures import Unreadable

SHARD = 512  # images whose features are kept in one file
AHEAD = 2  # shards under way: nobody waits for the last batch of one
BATCH = 32  # images that go through the backbone at once …
CPU_BATCH = 4  # … on a CPU, by each core: more fall out of its cache (measured on two)
THREADS = 32  # at most; more would wait for Python's lock
ROWS = 2**16  # of features that are held as floats at a time
COMMON = 0.55  # of features' squared length, in the mean: more is taken off (docs/clean.md)
SAME = 1e-3  # left without the mean: less is rounding, of images that are all the same
DTYPE = torch.float16  # of features: half the space, and no verdict hangs on the eleventh bit

Progress = Callable[[int, int], None]
Begun = list[tuple[range, Future[Embedded]]]


def embed_images(
    source: ImageSource,
    load_backbone: Callable[[], nn.Module],
    device: torch.device,
    cache: FeatureCache | None = None,
    progress: Callable[[int], None] | None = None,
) -> Embedded:
    """Features of all readable images; what the cache holds is not computed again.

    `load_backbone`, called when first needed, gives a network that takes uint8 (B, 3, S, S) to
    (B, D).
    """
    cache = cache or FeatureCache(None, "")
    parts: list[tuple[int, Embedded]] = []
    with _threads(device) as pool:
        looker = Looker(source, load_backbone, device, pool)
        for places, name, found in _begin_ahead(source, cache, looker):
            if isinstance(found, Embedded):
                part = found
            else:
                part = looker.finish(found, progress)
                cache.save(name, part)
            parts.append((places.start, part))
            if progress is not None:
                progress(places.stop)
    return _join(parts)


def _begin_ahead(
    source: ImageSource, cache: FeatureCache, looker: Looker
) -> Iterator[tuple[range, str, Embedded | Begun]]:
    """Shards in order: what the cache holds, or what the threads have begun, the next one too."""
    begun: deque[tuple[range, str, Embedded | Begun]] = deque()
    for start in range(0, len(source), SHARD):
        places = range(start, min(start + SHARD, len(source)))
        name = cache.name(source, places)
        begun.append((places, name, cache.load(name) or looker.begin(places)))
        if len(begun) == AHEAD:
            yield begun.popleft()
    yield from begun


class Looker:
    """Threads that decode images; on a CPU each of them also looks at its own.

    There every core runs the network on a few images of its own: cores that share each layer wait
    for one another, the more the more there are.
    """

    def __init__(
        self,
        source: ImageSource,
        load_backbone: Callable[[], nn.Module],
        device: torch.device,
        pool: ThreadPoolExecutor,
    ) -> None:
        self.source = source
        self.load_backbone = load_backbone
        self.device = device
        self.pool = pool
        self.on_cpu = device.type == "cpu"
        self.backbone: nn.Module | None = None

    def begin(self, places: range) -> Begun:
        if self.backbone is None:
            self.backbone = self.load_backbone().to(self.device).eval()
        size = CPU_BATCH if self.on_cpu else BATCH
        batches = [range(i, min(i + size, places.stop)) for i in places[::size]]
        return [(batch, self.pool.submit(self._read, batch)) for batch in batches]

    def _read(self, batch: range) -> Embedded:
        """In a thread. For a GPU the pixels stand where features will."""
        good: list[Tensor] = []
        unreadable: dict[int, str] = {}
        for place, i in enumerate(batch):
            try:
                good.append(self.source.decode(i))
            except Unreadable as error:
                unreadable[place] = str(error)
        pixels = torch.stack(good) if good else torch.zeros(0)
        seen = self._see(pixels) if self.on_cpu else pixels
        return Embedded(seen, [digest(each.numpy().tobytes()) for each in good], unreadable)

    @torch.inference_mode()
    def _see(self, pixels: Tensor) -> Tensor:
        assert self.backbone is not None
        if not len(pixels):
            return torch.zeros(0, 0, dtype=DTYPE)
        features: Tensor = self.backbone(pixels.to(self.device))
        return features.to("cpu", DTYPE)

    def finish(self, begun: Begun, progress: Callable[[int], None] | None) -> Embedded:
        """Wait for a shard, batch by batch."""
        parts: list[tuple[int, Embedded]] = []
        for batch, future in begun:
            part = future.result()
            if not self.on_cpu:
                part = replace(part, features=self._see(part.features))
            parts.append((batch.start - begun[0][0].start, part))
            if progress is not None:
                progress(batch.stop)
        return _join(parts)


@contextmanager
def _threads(device: torch.device) -> Iterator[ThreadPoolExecutor]:
    """One for each core that PyTorch uses, and to each of them its part of these.

    Beside a GPU they only decode: one for each core there is, whatever OMP_NUM_THREADS says.
    """
    cores = torch.get_num_threads()
    count = min(THREADS, cores if device.type == "cpu" else os.cpu_count() or 1)
    each = max(1, cores // count)
    pool = ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(each,))
    with warnings.catch_warnings():  # Pillow's remarks: what matters becomes a reason
        warnings.simplefilter("ignore")
        try:
            yield pool
        finally:
            pool.shutdown(cancel_futures=True)
            torch.set_num_threads(cores)  # threads made from now on ask what was set last


def _join(parts: Sequence[tuple[int, Embedded]]) -> Embedded:
    features = [part.features for _, part in parts if len(part.features)]
    return Embedded(
        features=torch.cat(features) if features else torch.zeros(0, 0, dtype=DTYPE),
        digests=[each for _, part in parts for each in part.digests],
        unreadable={start + i: why for start, part in parts for i, why in part.unreadable.items()},
    )


def embed_data(
    data: LabelledData,
    backbone: nn.Module,
    image_size: int,
    device: torch.device,
    skip_unreadable: bool,
    progress: Progress | None = None,
) -> LabelledData:
    """The same examples with features for images; those that cannot be read are left out."""
    listed = [split for split in (data.train, data.test) if split is not None]
    total, done, bad = sum(len(split) for split in listed), 0, list[Unread]()
    made: list[Split] = []
    unread: list[Collection[int]] = []
    for split in listed:
        tell = None if progress is None else _add(progress, done, total)
        found = embed_images(as_source(split, image_size), lambda: backbone, device, progress=tell)
        bad += [(split.ids[i], reason) for i, reason in found.unreadable.items()]
        made.append(with_features(split, found))
        unread.append(found.unreadable)
        done += len(split)
    if not len(made[0]):
        raise none_readable(data.name, bad[: len(data.train)])
    size_note = about_size(data.train.images, image_size, from_scratch=False)
    notes = (*data.notes, *size_note, *about_unreadable(bad, total, skip_unreadable))
    test = made[1] if data.test else None
    left = data.without(torch.tensor([*unread[0]], dtype=torch.int64))  # and the truth of these
    return replace(
        features_data(data, made[0], test),
        notes=notes,
        unread=[id for id, _ in bad],
        true_labels=left.true_labels,
        decided=left.decided,
        pictures=left.pictures,
    )


def as_source(split: Split, image_size: int) -> ImageSource:
    """A split's images, to be decoded at the backbone's size."""
    if isinstance(split.images, ImageSource):
        return split.images.resized(image_size)
    if not isinstance(split.images, Tensor) or split.images.shape[1] not in (1, 3):
        raise InputError(
            "a frozen backbone needs image files, or images in memory with 1 or 3 channels"
        )
    return ImageTensor(split.images, image_size)


def _add(progress: Progress, done: int, total: int) -> Callable[[int], None]:
    return lambda more: progress(done + more, total)


def with_features(split: Split, found: Embedded) -> Split:
    """The readable examples of a split, with their features for images."""
    return replace(without(split, found.unreadable), images=found.features)


def features_data(data: LabelledData, train: Split, test: Split | None = None) -> LabelledData:
    """The data with features for images.

    They are scaled to a mean squared length of 1 over the training split, so that one learning
    rate suits every backbone. Of images that are much alike (hands, drawings on white) most of it
    would be their mean, which says nothing of classes: there it is taken off first.
    """
    assert isinstance(train.images, Tensor)
    mean, square = _moments(train.images)
    own = 1 - float(mean.square().sum() / square)  # the share that tells images apart
    if SAME < own < 1 - COMMON:
        square = square * own
    else:
        mean = torch.zeros_like(mean)
    scale = float(square.rsqrt())
    return replace(
        data,
        train=_scaled(train, mean, scale),
        test=_scaled(test, mean, scale) if test else None,
        image_shape=(train.images.shape[1], 1, 1),
        recipe=head_recipe(len(train), len(data.class_names)),
    )


def is_centred(features: Tensor) -> bool:
    """Whether `features_data` has taken their mean off."""
    mean, square = _moments(features)
    return float(mean.square().sum()) < SAME * float(square)


def _moments(features: Tensor) -> tuple[Tensor, Tensor]:
    """The mean (D,) of features (N, D), and the mean of their squared lengths."""
    # A part at a time: floats of a million images' features would take 5 GB, their squares as much.
    total, squares = torch.zeros(features.shape[1], dtype=torch.float64), list[Tensor]()
    for rows in features.split(ROWS):
        part = rows.float()
        total += part.sum(0)
        squares.append(part.square().sum(1))
    return (total / len(features)).float(), torch.cat(squares).mean()


def head_recipe(examples: int, classes: int) -> Recipe:
    """For one linear layer on features of mean length 1: in effect logistic regression.

    An epoch must hold steps enough, and smaller batches take smaller steps; the decay is a prior
    that weighs the same however many examples there are. Beyond ten classes gradients shrink and
    weights must grow: steps and prior follow.
    """
    batch_size = max(16, min(128, examples // 20))
    many = max(1.0, classes / 10)
    learning_rate = batch_size / 64 * many**0.5
    return Recipe("feature_head", 15, batch_size, learning_rate, 1 / (many * examples))


def _scaled(split: Split, mean: Tensor, scale: float) -> Split:
    assert isinstance(split.images, Tensor)
    images = split.images - mean.to(split.images.dtype)
    return replace(split, images=images.mul_(scale))
