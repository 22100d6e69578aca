"""Each image once through a frozen backbone; afterwards a small head trains on the features."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from oddly.data.base import LabelledData, Recipe, Split
from oddly.data.files import about_unreadable, without
from oddly.data.images import digest
from oddly.data.source import ImageSource, ImageTensor
from oddly.errors import InputError
from oddly.pictures import Unreadable
from oddly.records import write_atomic

SHARD = 512  # images whose features are kept in one file
BATCH = 32  # images that go through the backbone at once …
CPU_BATCH = 8  # … on a CPU: more fall out of its cache (measured on two cores)
ROWS = 2**16  # of features that are held as floats at a time
DTYPE = torch.float16  # of features: half the space, and no verdict hangs on the eleventh bit

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Embedded:
    """What one pass over N listed images yields; n of them were readable."""

    features: Tensor  # (n, D)
    digests: list[bytes]
    """n of them; equal where the pixels, at the backbone's size, are."""
    unreadable: Mapping[int, str]
    """Place in the list → reason."""


class FeatureCache:
    """Features in files of a folder, each named by all that they depend on.

    Whatever changes (an image, the list, the backbone, its weights, the size), another name
    results: nothing can be out of date, and what nobody asked for can go.
    """

    def __init__(self, folder: Path | None, key: str, others: Sequence[Path] = ()) -> None:
        self.folder, self.key = folder, key
        self.others = others  # folders like it, which are read and left alone
        self.used: set[str] = set()

    def name(self, source: ImageSource, places: range) -> str:
        if self.folder is None:
            return ""  # to name a file that nobody writes, every image would have to be looked up
        key = hashlib.sha256(f"{self.key} {source.size}".encode())
        for i in places:
            line = f"{source.name(i)} {source.stamp(i)}\n"
            key.update(line.encode("utf-8", "backslashreplace"))
        name = f"{key.hexdigest()[:20]}.safetensors"
        self.used.add(name)
        return name

    def load(self, name: str) -> Embedded | None:
        """None where it is not there, or damaged."""
        if self.folder is None:
            return None
        part = self._read(self.folder / name)
        for other in self.others if part is None else ():
            if (part := self._read(other / name)) is not None:
                self.save(name, part)  # the other folder may go
                break
        return part

    def _read(self, path: Path) -> Embedded | None:
        if not path.is_file():
            return None
        try:
            with safe_open(path, "pt") as file:
                notes = json.loads(file.metadata()["oddly"])
                features = file.get_tensor("features")
        except (SafetensorError, OSError, KeyError, ValueError):
            return None
        digests = [bytes.fromhex(each) for each in notes["digests"]]
        unreadable = {int(place): reason for place, reason in notes["unreadable"].items()}
        return Embedded(features, digests, unreadable)

    def save(self, name: str, part: Embedded) -> None:
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        notes = {
            "digests": [each.hex() for each in part.digests],
            "unreadable": dict(part.unreadable),
        }
        content = save({"features": part.features}, {"oddly": json.dumps(notes)})
        write_atomic(self.folder / name, content)

    def drop_unused(self) -> None:
        """Forget features of an earlier list or backbone."""
        if self.folder is not None and self.folder.is_dir():
            for file in self.folder.glob("*.safetensors"):
                if file.name not in self.used:
                    file.unlink(missing_ok=True)


def embed_images(
    source: ImageSource,
    load_backbone: Callable[[], nn.Module],
    device: torch.device,
    cache: FeatureCache | None = None,
    progress: Callable[[int], None] | None = None,
) -> Embedded:
    """Features of all readable images; what the cache holds is not computed again.

    `load_backbone`, called when first needed, gives a network that takes uint8 (B, 3, S, S) to
    (B, D). Threads decode ahead of it.
    """
    cache = cache or FeatureCache(None, "")
    backbone: nn.Module | None = None
    parts: list[tuple[int, Embedded]] = []
    for start in range(0, len(source), SHARD):
        places = range(start, min(start + SHARD, len(source)))
        name = cache.name(source, places)
        part = cache.load(name)
        if part is None:
            backbone = backbone or load_backbone().to(device).eval()
            part = _embed_shard(source, places, backbone, device, progress)
            cache.save(name, part)
        parts.append((start, part))
        if progress is not None:
            progress(places.stop)
    return _join(parts)


def _join(parts: Sequence[tuple[int, Embedded]]) -> Embedded:
    return Embedded(
        features=_cat([part.features for _, part in parts if len(part.features)]),
        digests=[each for _, part in parts for each in part.digests],
        unreadable={start + i: why for start, part in parts for i, why in part.unreadable.items()},
    )


@torch.inference_mode()
def _embed_shard(
    source: ImageSource,
    places: range,
    backbone: nn.Module,
    device: torch.device,
    progress: Callable[[int], None] | None,
) -> Embedded:
    features: list[Tensor] = []
    digests: list[bytes] = []
    unreadable: dict[int, str] = {}
    size = CPU_BATCH if device.type == "cpu" else BATCH
    for batch, decoded in _decode_ahead(source, places, size):
        good = [image for image in decoded if isinstance(image, Tensor)]
        for i, image in zip(batch, decoded, strict=True):
            if isinstance(image, str):
                unreadable[i - places.start] = image
        digests += [digest(image.numpy().tobytes()) for image in good]
        if good:
            features.append(backbone(torch.stack(good).to(device)).to("cpu", DTYPE))
        if progress is not None:
            progress(batch.stop)
    return Embedded(_cat(features), digests, unreadable)


def _cat(features: list[Tensor]) -> Tensor:
    return torch.cat(features) if features else torch.zeros(0, 0, dtype=DTYPE)


def _decode_ahead(
    source: ImageSource, places: range, size: int
) -> Iterator[tuple[range, list[Tensor | str]]]:
    """Batches in order, each image or the reason why not; a few are decoded ahead by threads."""
    batches = [range(i, min(i + size, places.stop)) for i in places[::size]]
    pool = ThreadPoolExecutor(min(16, torch.get_num_threads()))
    with warnings.catch_warnings():  # Pillow's remarks: what matters becomes a reason
        warnings.simplefilter("ignore")
        try:
            waiting: list[Future[list[Tensor | str]]] = [
                pool.submit(_decode_batch, source, batch) for batch in batches
            ]
            for batch, future in zip(batches, waiting, strict=True):
                yield batch, future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _decode_batch(source: ImageSource, batch: range) -> list[Tensor | str]:
    decoded: list[Tensor | str] = []
    for i in batch:
        try:
            decoded.append(source.decode(i))
        except Unreadable as error:
            decoded.append(str(error))
    return decoded


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
    total, done, bad = sum(len(split) for split in listed), 0, []
    made: list[Split] = []
    unread: list[Collection[int]] = []
    for split in listed:
        tell = None if progress is None else _add(progress, done, total)
        found = embed_images(as_source(split, image_size), lambda: backbone, device, progress=tell)
        bad += [f"{split.ids[i]} ({reason})" for i, reason in found.unreadable.items()]
        made.append(with_features(split, found))
        unread.append(found.unreadable)
        done += len(split)
    notes = (*data.notes, *about_unreadable(bad, total, skip_unreadable))
    test = made[1] if data.test else None
    left = data.without(torch.tensor([*unread[0]], dtype=torch.int64))  # and the truth of these
    return replace(
        features_data(data, made[0], test),
        notes=notes,
        true_labels=left.true_labels,
        decided=left.decided,
        contradicted=left.contradicted,
    )


def as_source(split: Split, image_size: int) -> ImageSource:
    """A split's images, to be decoded at the backbone's size."""
    if isinstance(split.images, ImageSource):
        return split.images.resized(image_size)
    if not isinstance(split.images, Tensor) or split.images.shape[1] not in (1, 3):
        raise InputError(
            "a frozen backbone looks at image files, or at images in memory of 1 or 3 channels"
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
    rate suits every backbone.
    """
    assert isinstance(train.images, Tensor)
    if not len(train):
        raise InputError(f"{data.name}: none of its {len(data.train):,} images can be read")
    # A part at a time: floats of a million images' features would take 5 GB, their squares as much.
    squares = [part.float().square().sum(1) for part in train.images.split(ROWS)]
    scale = float(torch.cat(squares).mean().rsqrt())
    return replace(
        data,
        train=_scaled(train, scale),
        test=_scaled(test, scale) if test else None,
        image_shape=(train.images.shape[1], 1, 1),
        recipe=head_recipe(len(train), len(data.class_names)),
    )


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


def _scaled(split: Split, scale: float) -> Split:
    assert isinstance(split.images, Tensor)
    return replace(split, images=split.images * scale)
