"""What the pages say is what the stored results hold."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest

from oddly.benchmarks.detection.cases import CASES as FILLED
from oddly.core.learnt import SURE

ROOT = Path(__file__).parents[1]


def stored(name: str) -> dict[str, Any]:
    return dict(json.loads((ROOT / "oddly/results" / name).read_text()))


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the table that follows a line with `heading`, stars and spaces taken off."""
    lines = (ROOT / page).read_text().split(heading, 1)[1].splitlines()[2:]
    table = []
    for line in lines:
        if not line.startswith("|"):
            break
        table.append([cell.strip(" *") for cell in line.strip("|").split("|")])
    return table


def short(value: float) -> str:
    return f"{value:.3f}".lstrip("0")


def test_the_table_of_the_default() -> None:
    cases = {case["case"]: case for case in stored("sentinels_resnet18_30_epochs.json")["cases"]}
    table = rows("docs/constants.md", "paper's rule (E = 11, p = 10) |")
    assert len(table) == len(cases) == 7
    for name, default, best, removed, paper in table:
        case = cases[re.sub(r" \([\d.]+ %\)$", "", name)]
        assert removed == f"{100 * case['automatic']['removed']:.1f} %"
        if "f1" in case["automatic"]:
            assert (default, best) == (
                short(case["automatic"]["f1"]),
                short(case["automatic"]["best_f1"]),
            )
            assert paper == short(case["paper"]["f1"])
        else:
            assert paper == f"{100 * case['paper']['removed']:.1f} % removed"


def detected(case: str, method: str, seed: int = 0) -> dict[str, Any]:
    return dict(stored(f"detection/{case}--{method}--seed{seed}.json")["figures"])


@pytest.mark.parametrize(
    ("name", "heading"),
    [
        ("sentinels_features_25_epochs.json", "| removed | E of 25 |"),
        ("sentinels_features_held_out.json", "| removed | E of the 25 |"),
    ],
)
def test_the_tables_of_features(name: str, heading: str) -> None:
    cases = {case["case"]: case for case in stored(name)["cases"]}
    table = rows("docs/constants.md", heading)
    assert len(table) == len(cases)
    for case, default, best, removed, epoch in table:
        found = cases[re.sub(r" \([\d.]+ %\)$", "", case)]["automatic"]
        assert (removed, epoch) == (f"{100 * found['removed']:.1f} %", str(found["epoch"]))
        if "f1" in found:
            assert (default, best) == (short(found["f1"]), short(found["best_f1"]))


@pytest.mark.parametrize(
    ("kind", "heading", "rules"),
    [
        (
            "features",
            "features | none | predicted as given | a tenth of the margin |",
            ("weight_0.1",),
        ),
        ("resnet18", "| a tenth of the margin | a fifth |", ("weight_0.1", "weight_0.2")),
    ],
)
def test_the_tables_of_later_looks(kind: str, heading: str, rules: tuple[str, ...]) -> None:
    cases = {case["case"]: case for case in stored(f"second_look_{kind}.json")["cases"]}
    table = rows("docs/constants.md", heading)
    assert len(table) == len(cases)
    for name, *cells in table:
        for cell, rule in zip(cells, ("none", "predicted_as_given", *rules), strict=True):
            found = cases[name][rule]
            removed = f"{100 * found['removed']:.1f} % removed"
            assert cell == (short(found["f1"]) if "f1" in found else removed)


CASES = {
    "CIFAR-10, uniform 40 %": "cifar10-uniform-40",
    "CIFAR-10, uniform 20 %": "cifar10-uniform-20",
    "CIFAR-100, uniform 40 %": "cifar100-uniform-40",
    "CIFAR-100, uniform 20 %": "cifar100-uniform-20",
    "CIFAR-10N aggregate": "cifar10n-aggregate",
    "CIFAR-10N random1": "cifar10n-random1",
    "CIFAR-10, asymmetric 40 %": "cifar10-asymmetric-40",
    "CIFAR-10, asymmetric 20 %": "cifar10-asymmetric-20",
    "CIFAR-10, instance 40 %": "cifar10-instance-40",
    "CIFAR-10, instance 20 %": "cifar10-instance-20",
    "CIFAR-100, instance 40 %": "cifar100-instance-40",
    "CIFAR-100, instance 20 %": "cifar100-instance-20",
    "CIFAR-100, asymmetric 20 %": "cifar100-asymmetric-20",
    "CIFAR-100, asymmetric 40 %": "cifar100-asymmetric-40",
    "CIFAR-10, uniform 40 %, ConvNeXt V2 ¹": "cifar10-uniform-40-layernorm",
}


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
    assert max(it["best_f1"] - it["f1"] for it in found.values()) < 0.01
    assert "the cut is within .01 of the best possible" in page


def test_no_row_of_whole_runs_is_older_than_what_contrast_decides() -> None:
    runs = [stored(f"detection/{case}--odd--seed0.json") for case in CASES.values()]
    least = min(run["jobs"][0]["contrast"] for run in runs)
    assert least >= SURE
    assert f"None had a contrast below {least:.1f} at E" in words_of("docs/default.md")


def shown_or_not_run(case: str, method: str, show: Callable[[dict[str, Any]], str]) -> str:
    there = (ROOT / f"oddly/results/detection/{case}--{method}--seed0.json").exists()
    return show(detected(case, method)) if there else "not run"


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


@pytest.mark.parametrize(
    ("row", "case", "method"),
    [
        (0, "cifar10-uniform-40", "erm"),
        (1, "cifar10-uniform-40", "cleanlab"),
        (2, "cifar10-uniform-40", "odd_paper"),
        (3, "cifar10-uniform-40", "aum"),
        (4, "cifar10-uniform-40", "erm_gmm"),
        (5, "cifar10-uniform-40", "odd"),
        (6, "cifar10-asymmetric-40", "erm"),
        (7, "cifar10-asymmetric-40", "odd_paper"),
        (8, "cifar10-asymmetric-40", "cleanlab"),
        (9, "cifar10-asymmetric-40", "odd"),
        (10, "cifar10-instance-40", "erm"),
        (11, "cifar10-instance-40", "cleanlab"),
        (12, "cifar10-instance-40", "odd_paper"),
        (13, "cifar10-instance-40", "odd"),
        (14, "cifar10n-aggregate", "erm"),
        (15, "cifar10n-aggregate", "cleanlab"),
        (16, "cifar10n-aggregate", "odd_paper"),
        (17, "cifar10n-aggregate", "erm_gmm"),
        (18, "cifar10n-aggregate", "aum"),
        (19, "cifar10n-aggregate", "odd"),
    ],
)
def test_the_table_of_the_readme(row: int, case: str, method: str) -> None:
    found = detected(case, method)
    cells = rows("README.md", "| test accuracy | precision | recall | F1 |")[row]
    accuracy = found["test_accuracy"]
    assert cells[2] == ("–" if accuracy is None else f"{accuracy:.1f} %")
    for cell, figure in zip(cells[3:], ("precision", "recall", "f1"), strict=True):
        nothing_removed = not found["removed_fraction"]
        assert cell == ("–" if nothing_removed else f"{found[figure]:.2f}".lstrip("0"))


def test_no_accuracy_of_the_readme_is_bold_without_plain_training_beside_it() -> None:
    lines = (ROOT / "README.md").read_text().split("| test accuracy | precision |", 1)[1]
    kinds: list[list[str]] = []
    for line in lines.splitlines()[2:]:
        if not line.startswith("|"):
            break
        if line.split("|")[1].strip():
            kinds.append([])
        kinds[-1].append(line)
    assert len(kinds) == 4
    for kind in kinds:
        bold = any("**" in line.split("|")[3] for line in kind)
        assert bold == any("plain training" in line for line in kind), kind[0]


RIVALS = ("odd", "odd_paper", "cleanlab", "predicted", "aum", "erm_gmm")


@pytest.mark.parametrize(
    ("heading", "figure", "methods", "first"),
    [
        ("| AUM | two Gaussians |\n|---|---|---|---|---|---|---|---|\n", "f1", RIVALS, 2),
        ("| two Gaussians | final losses |\n", "average_precision", (*RIVALS, "erm"), 1),
    ],
)
def test_the_tables_of_rivals(
    heading: str, figure: str, methods: tuple[str, ...], first: int
) -> None:
    """The highest of a row, and no other, is bold."""
    lines = (ROOT / "docs/detection.md").read_text().split(heading, 1)[1].split("\n\n")[0]
    table = [line.strip("| ").split(" | ") for line in lines.splitlines() if line[:2] == "| "]
    heads = "CIFAR-10N aggregate, frozen features"
    cases = {**CASES, heads: "cifar10n-aggregate-features"}
    assert {row[0] for row in table} == {name for name in cases if "ConvNeXt" not in name}
    for name, *cells in table:
        if first == 2:
            assert cells.pop(0) == f"{100 * detected(cases[name], 'odd')['error_rate']:.1f} %"
        shown = [shown_or_not_run(cases[name], m, lambda it: short(it[figure])) for m in methods]
        most = max(value for value in shown if value != "not run")
        assert cells == [
            "–" if value == "not run" else f"**{value}**" if value == most else value
            for value in shown
        ]


def test_what_finding_them_costs() -> None:
    page = words_of("docs/detection.md")
    *whole, _ = CASES.values()  # without the ConvNeXt

    def spans(method: str) -> list[str]:
        there = [f"{case}--{method}--seed0.json" for case in whole]
        there = [name for name in there if (ROOT / "oddly/results/detection" / name).exists()]
        costs = [stored(f"detection/{name}")["cost"] for name in there]
        ends = [
            sorted({f"{end(c[key] for c in costs):.2f}" for end in (min, max)})
            for key in ("factor", "to_model")
        ]
        return [" to ".join(each.removeprefix("0") for each in pair) for pair in ends]

    (ours, _), *others = (spans(method) for method in ("odd", "cleanlab", "aum", "erm_gmm"))
    alone, whole_way = zip(*others, strict=True)
    assert f"ours takes {ours}, since" in page
    assert "cleanlab takes {}, AUM {} and two Gaussians {}, without".format(*alone) in page
    assert "on what they keep it is {}, {} and {}.".format(*whole_way) in page
    seeds = [short(detected("cifar10n-aggregate-features", "odd", seed)["f1"]) for seed in (1, 2)]
    assert f"Two other seeds of ours have F1 {seeds[0]} and {seeds[1]} there" in page


def test_the_order_in_which_cells_are_filled() -> None:
    told = words_of("docs/detection.md").split("`--next` begins with ", 1)[1]
    first, last = told.split(", then takes the last three rows of the table,", 1)
    named = re.findall(r"`([\w-]+)`", first)
    order = list(FILLED)
    assert named == order[: len(named)] and last.startswith(" then the rest.")
    rows_of_one = (
        "cifar10-uniform-40-layernorm",
        "digits-uniform-40",
        "cifar10n-aggregate-features",
    )
    assert tuple(order[len(named) : len(named) + 3]) == rows_of_one
    assert [row[0].strip("`") for row in rows("docs/detection.md", "| case | labels |")][
        -3:
    ] == list(rows_of_one)


def test_the_table_of_all_methods_on_digits() -> None:
    for name, f1, best, precision, cost, to_model, accuracy in rows(
        "docs/detection.md", "| + model | test accuracy |"
    ):
        method = name.strip("`")
        found = [stored(f"detection/digits-uniform-40--{method}--seed{s}.json") for s in range(3)]
        figures = [each["figures"] for each in found]
        if f1 != "–":
            ours = [each["f1"] for each in figures]
            assert f1 == f"{short(mean(ours))} ± {short(stdev(ours))}"
        assert best == short(mean(each["best_f1"] for each in figures))
        assert precision == short(mean(each["average_precision"] for each in figures))
        for cell, key in ((cost, "factor"), (to_model, "to_model")):
            assert cell == f"{mean(each['cost'][key] for each in found):.2f}"
        if accuracy != "–":
            assert accuracy == f"{mean(each['test_accuracy'] for each in figures):.1f} %"


def test_how_much_a_suggestion_promises() -> None:
    def said(case: str) -> dict[str, float]:
        found = stored(f"detection/{case}--odd--seed0.json")["details"]["suggestions"]
        return dict(found)

    for name, number, *shares in rows("docs/how_it_works.md", "| suggestions | right |"):
        found = said(CASES[name.replace(" that learnt little", " ¹")])
        assert number == f"{found['count']:,}"
        assert shares == [f"{100 * found[key]:.1f} %" for key in ("right", "said_right")]
    *whole, _ = CASES.values()  # without the ConvNeXt
    surplus = sorted(100 * (said(each)["said_right"] - said(each)["right"]) for each in whole)
    told = f"{surplus[1]:.0f} to {surplus[-1]:.0f} points too much in {len(whole) - 1} of the"
    assert f"{told} [{len(whole)} cases]" in words_of("docs/how_it_works.md")
    assert surplus[0] < 0 < surplus[1]


def test_why_the_default_differs_from_the_paper_s_rule() -> None:
    page = words_of("docs/how_it_works.md")
    names = sorted((ROOT / "oddly/results/detection").glob("cifar*--odd_paper--seed0.json"))
    both = [file.name.split("--")[0] for file in names if "features" not in file.name]
    rule, ours = ([detected(case, m)["f1"] for case in both] for m in ("odd_paper", "odd"))
    assert len(both) == 6 and "six kinds of labels on CIFAR" in page
    assert all(a > b for a, b in zip(ours, rule, strict=True)) and "ahead in each" in page
    (low, high), (least, most) = (
        [f"{end(each):.2f}".lstrip("0") for end in (min, max)] for each in (rule, ours)
    )
    assert f"reaches F1 {low} to {high} and the default {least} to {most}," in page
    table = {row[0]: row[1:] for row in rows("docs/reproduce.md", "| ours | f1 | precision |")}
    recalls = [float(table[f"E = {e}, p = 10"][2].split()[0]) for e in (50, 75, 100)]
    first, second, third = (f"{100 * recall:.0f} %" for recall in recalls)
    said = f"finds {first} of the wrong labels at E = 50, {second} at E = 75 and {third} at E = 100"
    assert said in page
    ten = stored("reproduce/cifar10-uniform40-odd-wrn-28-10-seed0-f8a844ad.json")["summary"]
    assert f"the cut is too low: precision {ten['precision']:.2f}.".replace("0.", ".") in page


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
    assert ours["aggregate"]["best_f1"] < 0.77 and ours["random1"]["best_f1"] < 0.83
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


LONG = "reproduce/cifar100-uniform40-odd-wrn-28-10-seed0-f857a3bb.json"


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


def test_what_our_default_ended_with_in_the_paper_s_setting() -> None:
    page, ours = words_of("docs/reproduce.md"), stored(LONG)["summary"]
    rule = stored("reproduce/cifar100-uniform40-odd-wrn-28-10-seed0-24b1caa0.json")["summary"]
    end = ours["test_accuracy"]
    above = f"{end:.2f} %: {end - 72.4:.2f} points above what the paper reports for its rule,"
    assert f"ended at {above} and {end - rule['test_accuracy']:.2f} above that rule" in page
    found = "precision {precision:.2f} and recall {recall:.2f}".format(**ours).replace("0.", ".")
    assert f"pruned after epoch {ours['prune_after']}, with {found}: {tell_kept(ours)}" in page


def tell_found(summary: dict[str, Any]) -> str:
    return "P {precision:.2f}, R {recall:.2f}".format(**summary).replace("0.", ".")


def tell_kept(summary: dict[str, Any]) -> str:
    kept = summary["examples"] - summary["removed"]
    missed = summary["examples"] * summary["noise"]["realised"] * (1 - summary["recall"])
    return f"of the {kept:,} labels that it kept, {100 * missed / kept:.0f} % were wrong"


def words_of(page: str) -> str:
    return " ".join((ROOT / page).read_text().split())


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
