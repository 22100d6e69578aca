"""How many labels to plant, the harm and the use of fewer: planting.json.

    python -m evidence.planting harm --data-dir DATA       # 73 trainings
    python -m evidence.planting finding --data-dir DATA    # 222

DATA holds the official CIFAR-10 and the labels of CIFAR-10N; `--only digits` needs none. A
training of ResNet-8 takes a minute and a half to three on a core, the others seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

from evidence.again import Cells, Row, Table, main, make, options
from evidence.features import cifar10
from evidence.figures import figures, rounded
from evidence.recorded_cases import with_data_dir
from evidence.small_trainings import HEAD, NOISE, RESNET, WRN, Trainer
from oddly.data import DataOptions

DIGITS = 1_437
EPOCHS = {RESNET: 12, HEAD: 15, WRN: 40}
HARM = (
    (RESNET, 4_000, (0, 100, 150, 300), 6),
    (RESNET, 8_000, (0, 300), 2),
    (HEAD, 2_000, (0, 100, 200), 6),
    (HEAD, 4_000, (0, 100, 300), 6),
    (WRN, DIGITS, (0, 100, 143), 3),
)
"""Network, examples, planted, seeds."""


def finding() -> Iterator[tuple[str, int, str, tuple[int, ...], int]]:
    """Network, examples, labels, planted, seeds."""
    for examples, planted in ((2_000, (100, 150, 200)), (4_000, (100, 150, 300))):
        yield from ((HEAD, examples, kind, planted, 6) for kind in NOISE)
    for kind in NOISE:
        yield HEAD, 10_000, kind, (200, 300), 6 if kind == "CIFAR-10N aggregate" else 4
    yield WRN, DIGITS, "uniform 20 %", (100, 143), 5
    yield WRN, DIGITS, "uniform 40 %", (100, 143), 10
    for kind in ("uniform 20 %", "uniform 40 %", "clean"):
        yield f"{RESNET}, 12 epochs", 4_000, kind, (100, 300), 2


def measure_harm(trainer: Trainer, network: str, examples: int, planted: int, seed: int) -> Row:
    """Right labels, and none removed: only what is planted can do harm."""
    asked = {"percentile": 100.0} if planted else {}
    with trainer.train(network, examples, "clean", planted, seed, **asked) as run:
        return {"test_accuracy": round(run.summary["test_accuracy"], 2)}


def measure_finding(
    trainer: Trainer, network: str, examples: int, kind: str, planted: int, seed: int
) -> Row:
    """With the sixth percentile throughout, which was the rule then."""
    with trainer.train(network, examples, kind, planted, seed, percentile=6.0) as run:
        verdicts, truth, summary = run.verdicts, run.truth, run.summary
    assert truth is not None
    keep, wrong = verdicts["keep"].to_numpy(), truth["mislabelled"].to_numpy()
    found, accuracy = figures(keep, verdicts["score"], wrong), summary["test_accuracy"]
    return {
        "wrong": rounded(wrong.mean()),
        "f1": found.get("f1"),
        "best_f1": found.get("best_f1"),
        "removed": found["removed"],
        "right_labels_lost": rounded((~keep)[~wrong].mean()),
        "test_accuracy": None if accuracy is None else round(accuracy, 2),
        "noise_rate": {end: rounded(rate) for end, rate in summary["estimated_noise"].items()},
        "doubted": summary["doubt"] is not None,
    }


def name(network: str, examples: int) -> Row:
    data = "digits" if network == WRN else f"{examples:,} of CIFAR-10"
    return {"data": data, "examples": examples, "network": network}


def harm_cells(trainer: Trainer) -> Cells:
    for network, examples, numbers, seeds in HARM:
        for planted in numbers:
            for seed in range(seeds):
                row = {"epochs": EPOCHS[network], "planted": planted, "seed": seed}
                work = partial(measure_harm, trainer, network, examples, planted, seed)
                yield name(network, examples) | row, work


def finding_cells(trainer: Trainer) -> Cells:
    for network, examples, kind, numbers, seeds in finding():
        for planted in numbers:
            for seed in range(seeds):
                row = {"labels": kind, "planted": planted, "seed": seed}
                work = partial(measure_finding, trainer, network, examples, kind, planted, seed)
                yield name(network, examples) | row, work


def run() -> None:
    parser = with_data_dir(options(__doc__))
    parser.add_argument("question", choices=("harm", "finding"))
    args = parser.parse_args()
    features = cache(lambda: cifar10(args.data_dir, args.out).scaled())
    trainer = Trainer(features, DataOptions(data_dir=args.data_dir))
    work = (harm_cells if args.question == "harm" else finding_cells)(trainer)
    make(Table("planting.json", args.question), work, args)


if __name__ == "__main__":
    main(run)
