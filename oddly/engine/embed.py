"""Run each image through a frozen backbone once; a small head then trains on the features."""

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

SHARD = 512  # images whose features are stored in one file
AHEAD = 2  # shards in progress, so that threads need not wait for the last batch of one
BATCH = 32  # images that go through the backbone at once …
CPU_BATCH = 4  # … and on a CPU, per core: more do not fit its cache (measured on two cores)
THREADS = 32  # at most; more would wait for Python's lock
ROWS = 2**16  # rows of features that are converted to float at a time
COMMON = 0.55  # if more of the squared length is the mean, the mean is subtracted (docs/clean.md)
SAME = 1e-3  # unless less than this share is left: then all images are the same
DTYPE = torch.float16  # half the space, and precise enough for the verdicts

Progress = Callable[[int, int], None]
Begun = list[tuple[range, Future[Embedded]]]


def embed_images(
    source: ImageSource,
    load_backbone: Callable[[], nn.Module],
    device: torch.device,
    cache: FeatureCache | None = None,
    progress: Callable[[int], None] | None = None,
) -> Embedded:
    """Features of all readable images; those in the cache are not computed again.

    `load_backbone` is called when first needed. It returns a network that maps uint8 (B, 3, S, S)
    to (B, D).
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
    """Shards in order, from the cache or just started; the next shard is then started as well."""
    begun: deque[tuple[range, str, Embedded | Begun]] = deque()
    for start in range(0, len(source), SHARD):
        places = range(start, min(start + SHARD, len(source)))
        name = cache.name(source, places)
        begun.append((places, name, cache.load(name) or looker.begin(places)))
        if len(begun) == AHEAD:
            yield begun.popleft()
    yield from begun


class Looker:
    """Decodes images in threads; on a CPU, the threads also run the backbone.

    On a CPU, every core runs the network on its own few images. Cores that share the work of each
    layer would wait for one another, the more cores the longer.
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
        """Decode a batch, in a thread. On a GPU, `features` are still the pixels."""
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
    """A pool with one thread for each core that PyTorch may use; they share these cores.

    With a GPU, threads only decode: one for each core of the machine, whatever OMP_NUM_THREADS is.
    """
    cores = torch.get_num_threads()
    count = min(THREADS, cores if device.type == "cpu" else os.cpu_count() or 1)
    each = max(1, cores // count)
    pool = ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(each,))
    with warnings.catch_warnings():  # Pillow's warnings; unreadable images are reported anyway
        warnings.simplefilter("ignore")
        try:
            yield pool
        finally:
            pool.shutdown(cancel_futures=True)
            torch.set_num_threads(cores)  # new threads take over the value that was set last


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
    """The same examples with features instead of images, without unreadable ones."""
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
    left = data.without(torch.tensor([*unread[0]], dtype=torch.int64))  # for true labels etc.
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
    """The readable examples of a split, with features instead of images."""
    return replace(without(split, found.unreadable), images=found.features)


def features_data(data: LabelledData, train: Split, test: Split | None = None) -> LabelledData:
    """The data with features instead of images.

    Features are scaled to a mean squared length of 1 over the training split, so that one learning
    rate suits every backbone. If images are much alike (hands, drawings on white), most of that
    length is the mean, which says nothing about classes, so it is subtracted first.
    """
    assert isinstance(train.images, Tensor)
    mean, square = _moments(train.images)
    own = 1 - float(mean.square().sum() / square)  # the share in which images differ
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
    """Whether `features_data` has subtracted the mean."""
    mean, square = _moments(features)
    return float(mean.square().sum()) < SAME * float(square)


def _moments(features: Tensor) -> tuple[Tensor, Tensor]:
    """The mean (D,) of features (N, D), and the mean of their squared lengths."""
    # In parts: as floats, the features of a million images would take 5 GB, their squares as much.
    total, squares = torch.zeros(features.shape[1], dtype=torch.float64), list[Tensor]()
    for rows in features.split(ROWS):
        part = rows.float()
        total += part.sum(0)
        squares.append(part.square().sum(1))
    return (total / len(features)).float(), torch.cat(squares).mean()


def head_recipe(examples: int, classes: int) -> Recipe:
    """The recipe for a linear layer on features of mean length 1, in effect logistic regression.

    Batches are small enough for an epoch to have enough steps, and smaller batches get a lower
    rate. The weight decay is a prior that counts the same for any number of examples. With more
    than ten classes, gradients shrink and weights must grow, so rate and decay are adjusted.
    """
    batch_size = max(16, min(128, examples // 20))
    many = max(1.0, classes / 10)
    learning_rate = batch_size / 64 * many**0.5
    return Recipe("feature_head", 15, batch_size, learning_rate, 1 / (many * examples))


def _scaled(split: Split, mean: Tensor, scale: float) -> Split:
    assert isinstance(split.images, Tensor)
    images = split.images - mean.to(split.images.dtype)
    return replace(split, images=images.mul_(scale))
