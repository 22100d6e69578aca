from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from oddly.data import Augment, augment, normalise
from oddly.data.transforms import blank, centre, channel_statistics
from tests.waiting import waiting_forbidden


def pictures(number: int = 7, channels: int = 3, height: int = 6, width: int = 5) -> Tensor:
    shape = (number, channels, height, width)
    generator = torch.Generator().manual_seed(3)
    return torch.randint(1, 256, shape, generator=generator).to(torch.uint8)


def slow_augment(images: Tensor, how: Augment, generator: torch.Generator) -> Tensor:
    """Image by image with NumPy, from the same draws."""
    number, _, height, width = images.shape
    mirrored = np.zeros(number, dtype=bool)
    corner = np.zeros((2, number), dtype=int)
    if how.flip:
        draws = torch.rand(number, 1, generator=generator, device=generator.device)
        mirrored = draws.flatten().cpu().numpy() < 0.5
    if how.pad:
        high = 2 * how.pad + 1
        corners = torch.randint(high, (2, number, 1), generator=generator, device=generator.device)
        corner = corners[:, :, 0].cpu().numpy()
    result = []
    for i, image in enumerate(images.numpy()):
        around = ((0, 0), (how.pad, how.pad), (how.pad, how.pad))
        padded = np.pad(image, around, mode="reflect" if how.reflect else "constant")
        top, left = corner[0, i], corner[1, i]
        crop = padded[:, top : top + height, left : left + width]
        result.append(crop[:, :, ::-1] if mirrored[i] else crop)
    return torch.from_numpy(np.stack(result))


HOW = [Augment(), Augment(2), Augment(0, True), Augment(3, True)]
HOW += [Augment(2, reflect=True), Augment(3, True, reflect=True), Augment(9, reflect=True)]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("channels", [1, 3])
def test_augment_matches_the_slow_twin(how: Augment, channels: int) -> None:
    images = pictures(channels=channels)
    before = images.clone()
    fast = augment(images, how, torch.Generator().manual_seed(5))
    assert torch.equal(fast, slow_augment(images, how, torch.Generator().manual_seed(5)))
    assert fast.dtype == torch.uint8 and torch.equal(images, before)


def test_a_single_pixel_has_no_other_side() -> None:
    images = pictures()[:, :, :1, :1]
    shown = augment(images, Augment(2, reflect=True), torch.Generator().manual_seed(0))
    assert torch.equal(shown, images)


def test_augment_takes_any_memory_layout() -> None:
    images, how = pictures(), Augment(1, True)
    plain = augment(images, how, torch.Generator().manual_seed(1))
    last = images.contiguous(memory_format=torch.channels_last)
    assert torch.equal(augment(last, how, torch.Generator().manual_seed(1)), plain)


def test_augment_reaches_every_corner_and_both_sides() -> None:
    """A 2 x 2 image padded by 1 has nine crops, each mirrored or not: 16 different pictures."""
    image = torch.tensor([[1, 2], [3, 4]], dtype=torch.uint8).expand(2_000, 1, 2, 2)
    seen = augment(image, Augment(1, True), torch.Generator().manual_seed(0)).flatten(1)
    expected = set()
    padded = np.pad(image[0, 0].numpy(), 1)
    for top in range(3):
        for left in range(3):
            crop = padded[top : top + 2, left : left + 2]
            expected |= {tuple(crop.ravel().tolist()), tuple(crop[:, ::-1].ravel().tolist())}
    assert {tuple(row) for row in seen.tolist()} == expected


def test_normalise_matches_the_formula() -> None:
    images = pictures()
    mean, std = (0.1, 0.5, 0.7), (0.2, 0.3, 0.5)
    result = normalise(images, mean, std)
    assert result.dtype == torch.float32
    pixels = images.numpy() / 255.0
    expected = (pixels - np.reshape(mean, (3, 1, 1))) / np.reshape(std, (3, 1, 1))
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5, atol=1e-5)


def test_normalise_first_used_in_inference_mode_still_trains() -> None:
    mean, std = (0.123,), (0.456,)  # not used elsewhere: the numbers are kept between calls
    with torch.inference_mode():
        normalise(pictures(channels=1), mean, std)
    weight = torch.ones(1, requires_grad=True)
    (normalise(pictures(channels=1), mean, std) * weight).sum().backward()
    assert weight.grad is not None


def test_channel_statistics_by_hand() -> None:
    images = torch.tensor([[[[0, 255]], [[51, 51]]]], dtype=torch.uint8)  # (1, 2, 1, 2)
    mean, std = channel_statistics(images)
    assert mean == pytest.approx((0.5, 0.2))
    assert std == pytest.approx((0.5, 1 / 255))  # a constant channel: one grey level, not zero


def test_channel_statistics_match_numpy() -> None:
    images = pictures(50)
    mean, std = channel_statistics(images)
    pixels = images.numpy() / 255.0
    assert mean == pytest.approx(pixels.mean((0, 2, 3))) and std == pytest.approx(
        pixels.std((0, 2, 3))
    )


@pytest.mark.gpu
@pytest.mark.parametrize("reflect", [False, True])
def test_augment_on_gpu_matches_the_slow_twin_without_a_host_sync(reflect: bool) -> None:
    images, how = pictures(64, 3, 8, 8), Augment(2, True, reflect=reflect)
    on_gpu = images.cuda()
    normalise(on_gpu, (0.5,) * 3, (0.3,) * 3)  # the first call copies the numbers over
    generator = torch.Generator("cuda").manual_seed(0)
    with waiting_forbidden():
        result = augment(on_gpu, how, generator)
        normalise(result, (0.5,) * 3, (0.3,) * 3)
    expected = slow_augment(images, how, torch.Generator("cuda").manual_seed(0))
    assert torch.equal(result.cpu(), expected)


def slow_blank(images: Tensor, side: int, generator: torch.Generator) -> Tensor:
    """Image by image and pixel by pixel, from the same draws."""
    number, _, height, width = images.shape
    rows, columns = (
        torch.randint(length, (number, 1), generator=generator, device=generator.device).tolist()
        for length in (height, width)
    )
    result = images.clone()
    for i in range(number):
        top, left = rows[i][0] - side // 2, columns[i][0] - side // 2
        for y in range(max(top, 0), min(top + side, height)):
            for x in range(max(left, 0), min(left + side, width)):
                result[i, :, y, x] = 0
    return result


@pytest.mark.parametrize("side", [1, 2, 3, 5])
def test_blank_matches_the_slow_twin(side: int) -> None:
    images = normalise(pictures(50), (0.5,) * 3, (0.3,) * 3)
    before = images.clone()
    fast = blank(images, side, torch.Generator().manual_seed(5))
    assert torch.equal(fast, slow_blank(images, side, torch.Generator().manual_seed(5)))
    assert torch.equal(images, before)


def test_a_blank_square_has_its_size_wherever_it_fits() -> None:
    """Of 3 x 3 around any pixel of 6 x 5: nine pixels inside, four in a corner; all channels."""
    gone = blank(torch.ones(2_000, 2, 6, 5), 3, torch.Generator().manual_seed(0)) == 0
    assert torch.equal(gone[:, 0], gone[:, 1])
    sizes = gone[:, 0].sum((1, 2))
    assert set(sizes.tolist()) == {4, 6, 9}
    assert float((sizes == 9).double().mean()) == pytest.approx(12 / 30, abs=0.04)
    assert len({tuple(row) for row in gone[:, 0].flatten(1).tolist()}) == 30  # every place


@pytest.mark.gpu
def test_blank_on_gpu_matches_the_slow_twin_without_a_host_sync() -> None:
    images = normalise(pictures(64, 3, 8, 8), (0.5,) * 3, (0.3,) * 3)
    on_gpu = images.cuda()
    with waiting_forbidden():
        result = blank(on_gpu, 3, torch.Generator("cuda").manual_seed(0))
    expected = slow_blank(images, 3, torch.Generator("cuda").manual_seed(0))
    assert torch.equal(result.cpu(), expected)


def ramp(side: int = 16) -> torch.Tensor:
    """Brightness grows to the right by 10 a pixel, so that a crop's place can be read off it."""
    row = 10 * torch.arange(side, dtype=torch.uint8)
    return row.expand(1, 1, side, side).clone()


def test_the_centre() -> None:
    assert torch.equal(centre(ramp(16), 10), ramp(16)[:, :, 3:13, 3:13])


def test_random_crops_of_their_own_size() -> None:
    images = ramp().expand(64, 3, 16, 16).contiguous()
    how = Augment(crop=12, flip=True)
    cut = augment(images, how, torch.Generator().manual_seed(0))
    assert cut.shape == (64, 3, 12, 12) and cut.dtype == torch.uint8
    steps = cut[:, 0, 0, 1:-1].int().diff(dim=1)
    upward = (steps > 0).all(1)
    assert (upward | (steps < 0).all(1)).all() and 16 <= int(upward.sum()) <= 48  # some mirrored
    assert ((steps.abs() - 10).abs() <= 1).all()  # not resized
    assert len(cut[:, 0, 0, 5].unique()) > 8  # at many places


def test_random_areas_are_resized() -> None:
    images = ramp().expand(256, 1, 16, 16).contiguous()
    how = Augment(crop=16, area=(0.25, 1.0))
    cut = augment(images, how, torch.Generator().manual_seed(0))
    width = (cut[:, 0, 8, -2].int() - cut[:, 0, 8, 1].int()) / 130  # share of the image's width
    assert 0.4 < width.min() < 0.6 and 0.95 < width.max() <= 1.02
    again = augment(images, how, torch.Generator().manual_seed(0))
    assert torch.equal(cut, again)
