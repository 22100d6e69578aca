"""docs/default.md against the stored runs."""

from __future__ import annotations

from typing import Any

import pytest

from oddly.core.sentinels.learnt import SURE
from tests.pages import CASES, LONG, detected, rows, short, shown_or_not_run, stored, words_of


def test_the_table_of_whole_runs() -> None:
    table = rows("docs/default.md", "| labels | F1, our cut |")
    assert [cells[0] for cells in table] == list(CASES)
    for name, f1, best, precision, removed, accuracy, plain in table:
        found = detected(CASES[name], "odd")
        assert removed == f"{100 * found['removed_fraction']:.1f} %"
        assert accuracy == f"{found['test_accuracy']:.1f} %"
        shown = [short(found[key]) for key in ("f1", "best_f1", "average_precision")]
        assert [f1, best, precision] == shown
        case = CASES[name]
        assert plain == shown_or_not_run(case, "erm", lambda it: f"{it['test_accuracy']:.1f} %")


def test_what_the_default_does_in_short() -> None:
    page = words_of("docs/default.md")
    *whole, _ = CASES.values()  # without the ConvNeXt
    found = {case: detected(case, "odd") for case in whole}

    def span(*kinds: str) -> str:
        f1 = sorted(it["f1"] for case, it in found.items() if any(kind in case for kind in kinds))
        return " to ".join(f"{end:.2f}".lstrip("0") for end in (f1[0], f1[-1]))

    assert f"F1 {span('uniform', 'instance')} on uniform and image-dependent noise" in page
    people = span("cifar10n").replace(" to ", " and ")
    assert f"{people} on people's labels, {span('asymmetric')} on confused classes" in page
    short_of = sorted(it["best_f1"] - it["f1"] for it in found.values())
    assert short_of[-2] < 0.0105 < short_of[-1] < 0.03
    assert "the cut is within .01 of the best possible, on one row within .03." in page


def test_no_row_of_whole_runs_is_older_than_what_contrast_decides() -> None:
    runs = [stored(f"detection/{case}--odd--seed0.json") for case in CASES.values()]
    least = min(run["jobs"][0]["contrast"] for run in runs)
    assert least >= SURE
    assert f"None had a contrast below {least:.1f} at E" in words_of("docs/default.md")


def test_the_other_rivals_of_whole_runs() -> None:
    page = words_of("docs/default.md")
    *whole, last = CASES.values()
    assert shown_or_not_run(last, "cleanlab", str) == "not run"
    ours, plain, cleanlab = (
        [detected(case, method) for case in whole] for method in ("odd", "erm", "cleanlab")
    )
    assert all(a["f1"] > b["best_f1"] for a, b in zip(ours, cleanlab, strict=True))
    best = sorted(short(each["best_f1"]) for each in cleanlab)
    assert len(best) == 14 and "On the fourteen rows that have it, no cut on cleanlab's" in page
    assert f"of five folds would reach our F1 either ({best[0]} to {best[-1]})" in page
    table = rows("docs/detection.md", "| labels | wrong | our default |")
    assert all(row[2] == max(each for each in row[2:] if each != "–") for row in table)
    assert "Ours has the highest F1 in [every row](detection.md)." in page
    gains = {
        case: a["test_accuracy"] - b["test_accuracy"]
        for case, a, b in zip(whole, ours, plain, strict=True)
    }
    most = f"{gains.pop('cifar10-instance-40'):.1f}"
    ten, hundred = (
        sorted(gain for case, gain in gains.items() if case.startswith("cifar100") == many)
        for many in (False, True)
    )
    assert f"ends {ten[0]:.1f} to {ten[-1]:.1f} points below on CIFAR-10, {most} with" in page
    assert f"and {hundred[0]:.1f} to {hundred[-1]:.1f} points below on CIFAR-100." in page
    told = f"ends {hundred[0]:.1f} to {hundred[-1]:.1f} points above plain training."
    assert told in words_of("README.md")
    cost = stored("detection/cifar100-uniform-20--cleanlab--seed0.json")["cost"]["factor"]
    assert f"which costs {cost:.2f} plain trainings" in page


def test_by_how_much_two_aims_are_missed() -> None:
    def short_of_best(case: str, seed: int = 0) -> str:
        found = detected(case, "odd", seed)
        return short(found["best_f1"] - found["f1"])

    page, heads = words_of("docs/default.md"), "cifar10n-aggregate-features"
    assert f"cut lies {short_of_best('cifar10-uniform-40-layernorm')} from the best" in page
    first, second, third = (short_of_best(heads, seed) for seed in range(3))
    assert f"frozen features {first} with seed 0 (.02), {second} and {third} with the" in page


def test_a_linear_head_on_frozen_features() -> None:
    page = words_of("docs/default.md").split("**A linear head on frozen features**", 1)[1]
    case = "cifar10n-aggregate-features"
    runs = [stored(f"detection/{case}--odd--seed{seed}.json") for seed in range(3)]

    def three(values: list[str]) -> str:
        return f"{values[0]}, {values[1]} and {values[2]}"

    f1, best = (three([short(run["figures"][k]) for run in runs]) for k in ("f1", "best_f1"))
    assert f"F1 {f1} with seeds 0, 1 and 2, best cuts {best}." in page
    assert f"five folds gave {short(detected(case, 'cleanlab')['f1'])} (seed 0)" in page
    told = [run["details"]["suggestions"] for run in runs]
    right, said = (three([f"{100 * it[k]:.0f}" for it in told]) for k in ("right", "said_right"))
    assert f"right in {right} % of them; their confidences said {said} %." in page


def test_an_early_prune() -> None:
    page = words_of("docs/default.md").split("- **Early E.**", 1)[1]
    cases = stored("sentinels_resnet18_30_epochs.json")["cases"]
    noisy = {case["case"]: case["forced"] for case in cases if case["error_rate"]}
    gaps = {name: [each["best_f1"] - each["f1"] for each in f] for name, f in noisy.items()}
    assert all([each["epoch"] for each in f] == [8, 12, 18] for f in noisy.values())  # of 30
    worst = max(gaps, key=lambda name: gaps[name][0])
    early, late = (f"{max(gap[i] for gap in gaps.values()):.2f}"[1:] for i in (0, 2))
    assert worst == "CIFAR-10, uniform 20 %"
    assert f"up to {early} below the best one (uniform 20 %), at 60 % of them within {late}" in page


def test_how_well_any_score_could_rank() -> None:
    page = words_of("docs/default.md")
    found = {
        case["case"]: case["logistic"] for case in stored("ranking_ceiling_resnet18.json")["cases"]
    }
    first, second = (
        [short(found[f"CIFAR-10N {each}"][key]) for key in ("average_precision", "best_f1")]
        for each in ("aggregate", "random1")
    )
    told = f"AP {first[0]} (aggregate; best F1 {first[1]}) and {second[0]} (random1; {second[1]})"
    assert told in page
    ours = {each: detected(f"cifar10n-{each}", "odd") for each in ("aggregate", "random1")}
    assert f"F1 .77 and AP .88 on aggregate (reached: {short(ours['aggregate']['f1'])} and" in page
    best = [short(each["best_f1"]) for each in ours.values()]
    assert "the limit: the best of all cuts has {} and {}.".format(*best) in page
    assert f"F1 .83 on random1 ({short(ours['random1']['f1'])})" in page


def test_the_table_of_clean_labels() -> None:
    table = rows("docs/default.md", "| difference of the means |")
    assert [cells[0] for cells in table] == ["CIFAR-10", "CIFAR-100"]
    for name, removed, ours, plain, difference in table:
        case = f"{name.replace('-', '').lower()}-clean"
        odd, erm = ([detected(case, m, seed) for seed in range(3)] for m in ("odd", "erm"))
        shares = ", ".join(f"{100 * each['removed_fraction']:.1f}" for each in odd)
        assert removed == f"{shares} %"
        for cell, found in ((ours, odd), (plain, erm)):
            assert cell == ", ".join(f"{each['test_accuracy']:.1f}" for each in found) + " %"
        means = [sum(each["test_accuracy"] for each in found) / 3 for found in (odd, erm)]
        assert difference == f"{means[0] - means[1]:+.2f}".replace("-", "−")


def test_what_it_costs_on_a_gpu() -> None:
    cost, words = stored("overhead_wrn_28_10.json"), words_of("docs/default.md")
    measured = dict(rows("docs/default.md", "| where | ratio |"))
    assert measured["one H200, WRN-28-10, bf16, not compiled"] == f"{cost['ratio']:.3f}"
    assert "On the H200 (`oddly/results/overhead_wrn_28_10.json`)" in words
    assert f"in turn, says {cost['interleaved_ratio']:.3f}," in words
    assert f"{cost['observe_microseconds']:.0f} µs in each step" in words
    verdict = cost["prune_milliseconds"]
    share = cost["rounds"] * verdict / 1_000 / cost["denoise_seconds"]
    assert f"{verdict:.0f} ms for the verdict, which is five sixths of it" in words
    assert share == pytest.approx(5 / 6, abs=0.02)
    speed = stored("throughput_wrn_28_10.json")
    table = rows("docs/reproduce.md", "| | images/s |")
    shown = [speed["images_per_second"], speed["dataloader_images_per_second"]]
    assert [table[0][1], table[2][1]] == [f"{each:,.0f}" for each in shown]
    ends = [speed[f"{which}_images_per_second"] for which in ("slowest", "fastest")]
    assert table[1][1] == " to ".join(f"{each:,.0f}" for each in ends)


def test_the_long_runs_on_cifar_100() -> None:
    half, whole = (stored(name)["summary"] for name in ("cifar100_wrn_28_10_100_epochs.json", LONG))
    page = words_of("docs/default.md").split("WRN-28-10 with dropout, 200 epochs", 1)[1]
    assert page.startswith(f": {whole['test_accuracy']:.1f} % test accuracy")
    assert tell_found(whole) in page and f"E found at {whole['prune_after']}," in page
    said, are = whole["estimated_noise"]["rate"], whole["noise"]["realised"]
    told = f"{100 * said:.1f} % of the labels estimated to be wrong where {100 * are:.1f} % are"
    assert told in page
    assert f"without dropout: {half['test_accuracy']:.1f} %; {tell_found(half)}" in page
    short_of = words_of("README.md").split("WRN-28-10, the paper's 200 epochs", 1)[1]
    assert short_of.startswith(f": {whole['test_accuracy']:.1f} %, where the paper reports 72.4 %")


def tell_found(summary: dict[str, Any]) -> str:
    return "P {precision:.2f}, R {recall:.2f}".format(**summary).replace("0.", ".")
