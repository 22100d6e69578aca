"""Images per second of the training loop, next to a plain PyTorch loop.

Paper: nothing; speed is ours.
Command: oddly benchmark throughput
Cost: a few minutes on one GPU, most of it compiling; seconds on a CPU with its small network.
Numbers to match, ours, on one H200 (WRN-28-10, batch 128, bf16, compiled): images_per_second
≥ 11,800 (the goal beyond it is 15,000), ratio ≥ 2. What was measured: docs/reproduce.md#speed.

Ours is the engine's own epoch with augmentation, ledger and schedule. The plain loop is a
torchvision dataset behind a DataLoader with worker processes, in PyTorch's default precision, with
the same network and optimiser. The ceiling is what a large matrix product reaches in the same
precision. On a GPU the milliseconds of a step are listed by kind of kernel, which shows what lies
between our rate and the ceiling.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset
from torch.utils.flop_counter import FlopCounterMode

from oddly.benchmarks.step_profile import profile
from oddly.data.base import Augment, LabelledData
from oddly.data.synthetic import synthetic
from oddly.engine.build import Parts, build, build_network, choose_device
from oddly.engine.config import RunConfig
from oddly.engine.fast import fast_model
from oddly.engine.loop import train_epoch
from oddly.engine.outcome import describe_device
from oddly.engine.randomness import fork_randomness
from oddly.engine.watch import Watcher
from oddly.errors import InputError
from oddly.methods import PRESETS
from oddly.records import environment

CLASSES, SIDE = 10, 32
MATMUL_SIDES = {"cuda": 8192, "cpu": 512}
REPEATS = 10


@dataclass(frozen=True)
class Workload:
    """What is trained, and for how long."""

    model: str
    steps: int
    """Per round; the first round is not counted."""
    rounds: int = 5


WORKLOADS = {"cuda": Workload("wrn-28-10", 100), "cpu": Workload("resnet8", 4, 3)}


def measure(
    device: str = "auto",
    model: str | None = None,
    steps: int | None = None,
    batch_size: int = 128,
    compile: bool | None = None,
    workers: int = 8,
    dropout: float = 0.0,
) -> dict[str, Any]:
    """The middle one of several rounds, each timed on the device after a round to warm up."""
    chosen = choose_device(device)
    work = WORKLOADS.get(chosen.type, WORKLOADS["cpu"])
    work = replace(work, model=model or work.model, steps=steps or work.steps)
    data = make_data(work.steps * batch_size)
    compile = chosen.type == "cuda" if compile is None else compile
    config = make_config(data.name, work, batch_size, chosen.type, compile)
    config = replace(config, dropout=dropout)
    with fork_randomness():
        parts = build(config, data)
        ours, first, spent = time_ours(parts, work)
        theirs = time_theirs(config, data, chosen, work, workers)
        flops = count_flops(parts)
        ceiling = time_matmul(chosen, parts.bf16)
    return {
        **summarise(len(data.train), ours, theirs, flops, ceiling),
        "first_round_seconds": first,
        **{f"milliseconds_{kind}": each for kind, each in spent.items()},
        "n": len(ours),
        "model": work.model,
        "dropout": dropout,
        "batch_size": batch_size,
        "steps": work.steps,
        "precision": "bf16" if parts.bf16 else "fp32",
        "compile": compile,
        "dataloader_workers": workers,
        **environment(describe_device(chosen)),
    }


def make_config(
    name: str, work: Workload, batch_size: int, device: str, compile: bool
) -> RunConfig:
    """A run whose verdict never comes: every epoch is a whole one, with the ledger on."""
    never = work.rounds + 3
    return RunConfig(
        name,
        model=work.model,
        epochs=never,
        batch_size=batch_size,
        learning_rate=0.01,
        weight_decay=5e-4,
        device=device,
        compile=compile,
        settings={**PRESETS["paper"], "prune_after": never},
    )


def summarise(
    images: int, ours: list[float], theirs: list[float], flops: float, ceiling: float
) -> dict[str, float]:
    """Rates from the seconds of rounds of so many images; flops of one, and the most per second."""
    rate, other = (images / median(each) for each in (ours, theirs))
    return {
        "images_per_second": rate,
        "dataloader_images_per_second": other,
        "ratio": rate / other,
        "teraflops": rate * flops / 1e12,
        "matmul_teraflops": ceiling / 1e12,
        "share_of_matmul": rate * flops / ceiling,
        "fastest_images_per_second": images / min(ours),
        "slowest_images_per_second": images / max(ours),
    }


def make_data(examples: int) -> LabelledData:
    """Random pictures, never zeros, augmented as CIFAR is."""
    data = synthetic(CLASSES, -(-examples // CLASSES), SIDE, test_per_class=1)
    data = data.take(torch.arange(examples))
    return replace(data, test=None, augment=Augment(pad=4, flip=True))


def time_ours(parts: Parts, work: Workload) -> tuple[list[float], float, dict[str, float]]:
    """Seconds of each counted round of the engine's loop, and of the first, which compiles.

    Also where the GPU spends a step, by one round more.
    """
    step_model = fast_model(parts)
    epochs = iter(range(work.rounds + 2))

    def one_round() -> None:
        epoch = next(epochs)
        parts.context.epoch = epoch
        parts.method.begin_epoch(parts.context)
        train_epoch(parts, step_model, epoch, Watcher())
        parts.context.epoch = epoch + 1
        parts.method.end_epoch(parts.context)

    first, *others = (time_once(one_round, parts.device) for _ in range(work.rounds + 1))
    spent = profile(one_round, work.steps) if parts.device.type == "cuda" else {}
    return others, first, spent


class Pictures(Dataset[tuple[Tensor, int]]):
    """As torchvision's CIFAR-10: arrays that become PIL images, one by one."""

    def __init__(self, data: LabelledData, transform: Callable[[Any], Tensor]) -> None:
        assert isinstance(data.train.images, Tensor)
        self.arrays = data.train.images.permute(0, 2, 3, 1).contiguous().numpy()
        self.labels = data.train.labels.tolist()
        self.transform = transform

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        from PIL import Image

        return self.transform(Image.fromarray(self.arrays[index])), self.labels[index]


def time_theirs(
    config: RunConfig, data: LabelledData, device: torch.device, work: Workload, workers: int
) -> list[float]:
    """Seconds of each counted round of a plain loop over one endless loader."""
    model = build_network(config, data, device)
    model = model.to(memory_format=torch.contiguous_format)  # the default
    optimizer = torch.optim.SGD(
        model.parameters(), lr=0.01, momentum=0.9, nesterov=True, weight_decay=5e-4
    )
    batches = endless(make_loader(data, config.batch_size or 1, workers, device))
    model.train()

    def one_round() -> None:
        for inputs, labels in islice(batches, work.steps):
            inputs = inputs.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            loss = F.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    return [time_once(one_round, device) for _ in range(work.rounds + 1)][1:]


def make_loader(
    data: LabelledData, batch_size: int, workers: int, device: torch.device
) -> DataLoader[tuple[Tensor, int]]:
    try:
        from torchvision import transforms
    except ImportError:
        raise InputError(
            "this benchmark compares with torchvision: pip install torchvision"
        ) from None
    transform = transforms.Compose(
        [
            transforms.RandomCrop(SIDE, padding=4),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(data.mean, data.std),
        ]
    )
    return DataLoader(
        Pictures(data, transform),
        batch_size,
        shuffle=True,
        num_workers=workers,
        pin_memory=device.type == "cuda",
        drop_last=True,
        persistent_workers=workers > 0,
    )


def endless(loader: DataLoader[tuple[Tensor, int]]) -> Iterator[tuple[Tensor, Tensor]]:
    while True:
        yield from loader


def time_once(work: Callable[[], None], device: torch.device) -> float:
    """Seconds on the device's own clock where it has one."""
    if device.type != "cuda":
        begun = time.perf_counter()
        work()
        return time.perf_counter() - begun
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize(device)
    begin.record()
    work()
    end.record()
    torch.cuda.synchronize(device)
    return float(begin.elapsed_time(end)) / 1000


def count_flops(parts: Parts) -> float:
    """Of one image's forward and backward pass, two per multiply-add, as torch counts them."""
    channels, height, width = parts.data.image_shape
    inputs = torch.randn(2, channels, height, width, device=parts.device)
    counter = FlopCounterMode(display=False)
    with counter:
        logits: Tensor = parts.model(inputs)
        logits.sum().backward()
    parts.optimizer.zero_grad(set_to_none=True)
    return counter.get_total_flops() / len(inputs)


def time_matmul(device: torch.device, bf16: bool) -> float:
    """FLOP/s of a large square matrix product, the middle of several."""
    side = MATMUL_SIDES.get(device.type, MATMUL_SIDES["cpu"])
    dtype = torch.bfloat16 if bf16 else torch.float32
    a, b = (torch.randn(side, side, device=device, dtype=dtype) for _ in range(2))

    def several() -> None:
        for _ in range(REPEATS):
            a @ b

    seconds = [time_once(several, device) for _ in range(4)][1:]
    return REPEATS * 2 * side**3 / median(seconds)
