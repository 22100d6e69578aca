"""docs/reproduce.md on what was trained at the paper's size, and where a step's time goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from oddly.engine.config import RunConfig
from oddly.experiments import EXPERIMENTS
from oddly.experiments.base import Cell, fill
from oddly.experiments.results import Result, Store
from oddly.experiments.sizes import FAST, FULL
from oddly.experiments.table1_cifar_uniform import make_job
from tests.pages import LONG, rows, short, stored, words_of

PAGE = words_of("docs/reproduce.md")
STEP: dict[str, Any] = stored("step_wrn_28_10.json")
KINDS = ("convolutions", "compiled", "idle", "optimizer", "rest")


def result(row: str) -> Result:
    return find(make_job(FULL, row, "cifar100", 0.4, 0).config)


def find(config: RunConfig) -> Result:
    found = Store().find(config)
    assert found
    return found


def test_plain_training_on_cifar_100() -> None:
    plain, rule, ours = (
        result(row).summary["test_accuracy"] for row in ("ERM", "ODD", "ODD (our default)")
    )
    assert f"**Plain training** (ERM) ended at {plain:.2f} %, where the paper has 55.7" in PAGE
    gains = (
        f"ODD gains {rule - plain:.1f} points over it here (paper: 16.7), our default"
        f" {ours - plain:.1f}."
    )
    assert gains in PAGE
    assert f"plain training {plain:.1f} %." in words_of("README.md")
    curve = result("ERM").curve
    tested = {e: a for e, a in zip(curve["epoch"], curve["test_accuracy"], strict=True) if a}
    early = {e: a for e, a in tested.items() if e <= 125}
    top, low = max(early, key=early.__getitem__), min((a, e) for e, a in tested.items() if e >= 80)
    said = f"rises to {early[top]:.1f} % at epoch {top}, falls to {low[0]:.1f} % at {low[1]} while"
    assert said in PAGE
    assert f"took {result('ERM').summary['seconds'] / 60:.1f} minutes" in PAGE


def test_what_decides_the_memorising() -> None:
    looks = result("ERM").snapshots
    at_75 = looks["75"]["by_percentile"]["10"]
    found = f"{two(at_75['precision'])} and recall {two(at_75['recall'])}"
    assert f"With dropout, precision at E = 75 is {found}," in PAGE
    curve = result("ERM").curve
    reached = curve["test_accuracy"][curve["epoch"].index(75)]
    assert f"the test accuracy there is {reached:.1f} instead of 46.8 %" in PAGE


def test_simulated_and_real_noise() -> None:
    looks = result("ERM").snapshots
    far = {int(epoch): look["ks_noise_simulated"] for epoch, look in looks.items()}
    until = [distance for epoch, distance in far.items() if epoch <= 75]
    fewer = [look["ks_noise_simulated"] for look in trunk(0.2).snapshots.values()]
    both = (
        f"KS distance of {two(min(until))} to {two(max(until))} apart up to epoch 75,"
        f" at 20 % {two(min(fewer))} to {two(max(fewer))} (epoch 25, which"
    )
    assert both in PAGE
    assert f"At epoch 100, 40 % noise, it is {two(far[100])}," in PAGE


def trunk(noise: float, kind: str = "uniform") -> Result:
    return find(FULL.trunk("cifar100", 0, noise=noise, noise_kind=kind))


def test_what_losses_depend_on() -> None:
    cells = fill(cells_of("figure3"), Store())

    def span(row: str, column: str = "") -> str:
        known = [c.ours or 0 for c in cells if c.row.startswith(row) and column in c.column]
        assert len(known) == 4
        return f"{two(min(known))} to {two(max(known))}"

    amount, kind = span("KS(simulated at 20"), span("KS(simulated uniform")
    assert f"From 20 to 40 % they move by {amount}, from uniform to asymmetric by {kind}." in PAGE
    assert f"do depend on the amount**, by {span('KS(noise at 20')}: the fewer" in PAGE
    medians = [
        [run.snapshots[e]["quantiles"]["noise"][2] for e in ("10", "30", "50", "75")]
        for run in (trunk(0.2), trunk(0.4))
    ]
    assert all(few > many for few, many in zip(*medians, strict=True))
    asymmetric = [
        span(f"KS(noise, {which})", "asymmetric 40 %") for which in ("simulated", "normal")
    ]
    lie = "losses lie {} from the simulated ones and only {} from those of right".format(
        *asymmetric
    )
    assert lie in PAGE
    runs = (trunk(0.4), trunk(0.2), trunk(0.4, "asymmetric"))
    ten = {
        (i, e): run.snapshots[e]["by_percentile"]["10"]
        for i, run in enumerate(runs)
        for e in ("10", "30", "50", "75")
    }
    cuts = [each["threshold"] for each in ten.values()]
    assert f"p = 10 lies between {min(cuts):.2f} and {max(cuts):.2f} in all three runs" in PAGE
    late = ten[2, "75"]
    would = f"{100 * late['recall']:.0f} % of the wrong labels at epoch 75, with precision"
    assert f"{would} {two(late['precision'])}:" in PAGE


def test_the_best_of_the_cuts_of_figure_4() -> None:
    looks = result("ERM").snapshots
    f1 = {
        (epoch, p): looks[epoch]["by_percentile"][p]["f1"]
        for epoch in ("25", "50", "75", "100")
        for p in ("1", "5", "10", "30", "50")
    }
    assert max(f1, key=f1.__getitem__) == ("50", "10")
    assert f"p = 10 at E = 50 (F1 {short(round(f1['50', '10'], 3))})" in PAGE
    ours, other = (short(round(f1["75", p], 3)) for p in ("10", "5"))
    assert f"At the paper's E = 75, p = 10 has {ours} and p = 5 has {other:0<4}" in PAGE
    assert f"recall {two(looks['100']['by_percentile']['10']['recall'])})" in PAGE
    ends = [f1["75", p] for p in ("1", "5", "10", "30")]
    assert f"F1 goes from {two(min(ends))} to {two(max(ends))} at E = 75" in PAGE


def test_where_a_step_goes() -> None:
    plain, dropout, searched = STEP["rows"]
    table = rows("docs/reproduce.md", "| milliseconds of a step of 128 images | no dropout |")
    assert [row[1:] for row in table] == [
        [f"{row[f'milliseconds_{kind}']:.2f}" for row in (plain, dropout)] for kind in KINDS
    ]
    rates = [f"{row['images_per_second']:,.0f}" for row in (plain, dropout)]
    assert "{} images/s without dropout and the {} with it".format(*rates) in PAGE
    assert f"With it the loop runs at {rates[1]} images/s" in PAGE
    assert f"reached {STEP['matmul_teraflops']:.0f} TFLOP/s)" in PAGE
    busy = plain["milliseconds_convolutions"] / 1000
    work = STEP["batch_size"] * STEP["gigaflops_per_image"] / 1000
    assert f"The convolutions run at {work / busy:.0f} TFLOP/s, two thirds" in PAGE
    assert work / busy / STEP["matmul_teraflops"] == pytest.approx(2 / 3, abs=0.01)
    allowed = round(STEP["batch_size"] / busy, -2)
    assert f"On their own they would allow {allowed:,.0f} images/s" in PAGE
    left = 1000 * STEP["batch_size"] / 15_000 - 1000 * busy
    others = 1000 * STEP["batch_size"] / plain["images_per_second"] - 1000 * busy
    assert left == pytest.approx(0.5, abs=0.05) and others == pytest.approx(3, abs=0.1)
    assert f"({searched['images_per_second']:,.0f} images/s)" in PAGE


def test_the_summary() -> None:
    """Each row that holds numbers: ours from stored runs, the paper's from the experiments."""
    summary = {row[0]: row[1:] for row in rows("docs/reproduce.md", "| in the paper | does it")}
    assert len(summary) == 9
    table, _, large, two_, three, four, seven, ten, eleven = summary.values()
    cells = fill(EXPERIMENTS["table1"].cells(FULL, 3), Store())
    both = {f"{c.row}, {c.column}": c for c in cells if c.paper and c.ours is not None}
    said = [
        f"{name} {both[f'{row}, {column}'].ours:.2f} / {both.pop(f'{row}, {column}').paper}"
        for row, column, name in (
            ("ERM", "CIFAR-100 40 %", "plain training"),
            ("ODD", "CIFAR-100 40 %", "ODD"),
            ("ODD + mixup", "CIFAR-100 40 %", "ODD + mixup"),
            ("ODD", "CIFAR-10 40 %", "CIFAR-10, 40 %: ODD"),
        )
    ]
    assert not both
    assert all(each.replace("±", " ± ") in table[1] for each in said)
    printed = sum(cell.paper is not None for cell in cells)
    assert table[2].startswith(f"{printed - len(said)} of its {printed} numbers")
    assert large[2] == f"all {sum(count_printed(f'table{n}') for n in range(3, 8))} numbers"
    leopards = fill(EXPERIMENTS["figure2"].cells(FAST, 3), Store())[2]
    assert two_[1].startswith(f"{leopards.ours:.0f} leopards removed by all three seeds")
    looks = result("ERM").snapshots
    kinds = (
        [
            look["ks_noise_simulated"]
            for run in runs
            for epoch, look in run.snapshots.items()
            if int(epoch) <= 75
        ]
        for runs in ((trunk(0.2), trunk(0.4)), (trunk(0.4, "asymmetric"),))
    )
    uniform, asymmetric = (f"{two(min(far))} to {two(max(far))}" for far in kinds)
    assert f"up to epoch 75: {uniform} with uniform noise, {asymmetric} with asymmetric" in three[1]
    f1 = [f"{short(looks[e]['by_percentile']['10']['f1'])} at E = {e}" for e in ("50", "75", "100")]
    assert four[1].startswith(f"F1 with p = 10: {', '.join(f1)} /")
    runs = fill(EXPERIMENTS["figure7"].cells(FULL, 1), Store())
    assert seven[1].startswith(f"{sum(bool(run.values) for run in runs)} of {len(runs)} runs")
    found = {f"{c.row}, {c.column}": c.ours for c in fill(cells_of("figure10"), Store())}
    removed, wrong = (found[f"40 % noise, {name}"] for name in ("removed, E = 75", "wrong"))
    assert f"{removed:.1f} % removed where {wrong:.1f} % are wrong /" in ten[1]
    found = {f"{c.row}, {c.column}": c.ours for c in fill(cells_of("figure11"), Store())}

    def both_of(noise: int, data: str) -> str:
        row = f"{noise} % noise, {data}"
        return (
            f"{data} {two(found[f'{row} precision'] or 0)} and {two(found[f'{row} recall'] or 0)}"
        )

    forty = ", ".join(both_of(40, data) for data in ("CIFAR-100", "CIFAR-10"))
    assert eleven[1].startswith(f"40 %: {forty}; 20 %: {both_of(20, 'CIFAR-100')} /")
    missing = sum(value is None for value in found.values()) // 2
    assert eleven[2] == f"{missing} of {len(found) // 2} cases"


def cells_of(name: str) -> Sequence[Cell]:
    return EXPERIMENTS[name].cells(FULL, 1)


def count_printed(name: str) -> int:
    experiment = EXPERIMENTS[name]
    return sum(cell.paper is not None for cell in experiment.cells(experiment.sizes["full"], 1))


def two(value: float) -> str:
    return f"{value:.2f}".lstrip("0")


def test_what_our_default_ended_with_in_the_paper_s_setting() -> None:
    page, ours = words_of("docs/reproduce.md"), stored(LONG)["summary"]
    rule = stored("reproduce/cifar100-uniform40-odd-wrn-28-10-seed0-24b1caa0.json")["summary"]
    end = ours["test_accuracy"]
    above = f"{end:.2f} %: {end - 72.4:.2f} points above what the paper reports for its rule,"
    assert f"ended at {above} and {end - rule['test_accuracy']:.2f} above that rule" in page
    found = "precision {precision:.2f} and recall {recall:.2f}".format(**ours).replace("0.", ".")
    assert f"pruned after epoch {ours['prune_after']}, with {found}: {tell_kept(ours)}" in page


def tell_kept(summary: dict[str, Any]) -> str:
    kept = summary["examples"] - summary["removed"]
    missed = summary["examples"] * summary["noise"]["realised"] * (1 - summary["recall"])
    return f"of the {kept:,} labels that it kept, {100 * missed / kept:.0f} % were wrong"


def test_what_the_paper_s_rule_ended_with() -> None:
    page = words_of("docs/reproduce.md")
    odd, mixup = (
        stored(f"reproduce/cifar100-uniform40-{name}.json")["summary"]
        for name in ("odd-wrn-28-10-seed0-24b1caa0", "odd_mixup-wrn-28-10-seed0-1b225526")
    )
    found = "precision {precision:.2f} and recall {recall:.2f}".format(**odd).replace("0.", ".")
    ended = f"{odd['test_accuracy']:.1f} % with ODD and {mixup['test_accuracy']:.2f} % with mixup"
    assert f"a second training of the same seed again had {found}. It ended at {ended}" in page
    short_of = (72.4 - odd["test_accuracy"], 76.5 - mixup["test_accuracy"])
    assert "{:.1f} and {:.2f} points below the paper".format(*short_of) in page
    assert tell_kept(odd) in page
