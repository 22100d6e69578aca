from __future__ import annotations

from oddly.plane import Plane, find_steps


def test_steps_are_round() -> None:
    assert find_steps(0, 8.9, 5) == [0, 2, 4, 6, 8]
    assert find_steps(38, 97.9, 4, outside=True) == [20, 40, 60, 80, 100]
    assert find_steps(0, 0.1, 4, outside=True) == [0, 0.05, 0.1]
    assert find_steps(1, 1, 5) == [1]
    assert find_steps(0, 0, 5) == [0]
    assert find_steps(-2.1, 2.9, 5) == [-2, -1, 0, 1, 2]


def test_places_worked_by_hand() -> None:
    plane = Plane(100, 50, (0, 4), (0, 4), left=10, right=10, top=5, bottom=5)
    assert (plane.x(0), plane.x(1), plane.x(4), plane.floor) == (10, 30, 90, 45)
    assert (plane.y(0), plane.y(1), plane.y(4), plane.y(9)) == (45, 35, 5, 5)  # none above the top
    roots = Plane(100, 50, (0, 4), (0, 4), square_root=True, top=5, bottom=5)
    assert roots.y(1) == 25
    assert Plane(100, 50, (3, 3), (0, 1), left=10, right=10).x(3) == 50  # no span: the middle
