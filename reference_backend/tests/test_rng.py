"""Generators: seeds, states, devices."""

import pytest
import torch


def draw(n: int = 8, **kwargs) -> list[float]:
    return torch.empty(n, device="accel").uniform_(**kwargs).cpu().tolist()


def test_seed_repeats():
    torch.manual_seed(7)
    first = draw()
    assert draw() != first
    torch.manual_seed(7)
    assert draw() == first
    torch.manual_seed(8)
    assert draw() != first


def test_state_round_trip_in_mid_sequence():
    torch.manual_seed(7)
    draw()
    state = torch.accel.get_rng_state()
    assert state.device.type == "cpu" and state.dtype == torch.uint8 and state.shape == (16,)
    expected = [draw(), draw()]
    torch.accel.set_rng_state(state)
    assert [draw(), draw()] == expected


def test_devices_have_their_own():
    torch.manual_seed(7)
    before = torch.accel.get_rng_state(1)
    draw()
    assert torch.equal(torch.accel.get_rng_state("accel:1"), before)
    assert not torch.equal(torch.accel.get_rng_state(0), before)
    with torch.accel.device(1):
        torch.accel.manual_seed(99)
        assert torch.accel.initial_seed() == 99
    assert torch.accel.initial_seed() == 7
    torch.accel.manual_seed_all(3)
    assert [g.initial_seed() for g in torch.accel.default_generators] == [3] * (
        torch.accel.device_count()
    )


def test_generator_objects():
    generator = torch.Generator(device="accel")
    assert generator.device == torch.device("accel:0")
    generator.manual_seed(5)
    default = torch.accel.get_rng_state()
    first = draw(generator=generator)
    assert torch.equal(torch.accel.get_rng_state(), default)
    generator.manual_seed(5)
    copied = generator.clone_state()
    assert draw(generator=generator) == draw(generator=copied) == first
    assert torch.Generator(device="accel:1").device.index == 1
    with pytest.raises(RuntimeError, match="invalid accel device index 9"):
        torch.Generator(device="accel:9")


def test_wrong_generator_is_refused():
    for generator in (torch.Generator(), torch.Generator(device="accel:1")):
        with pytest.raises(RuntimeError, match="generator"):
            draw(generator=generator)


def test_offset():
    generator = torch.Generator(device="accel").manual_seed(5)
    assert generator.get_offset() == 0
    first = draw(generator=generator)
    offset = generator.get_offset()
    assert offset > 0 and offset % 4 == 0
    generator.set_offset(0)
    assert draw(generator=generator) == first
    with pytest.raises(RuntimeError, match="multiple of 4"):
        generator.set_offset(3)


def test_fork_rng():
    torch.manual_seed(1)
    with torch.random.fork_rng(devices=[0, 1], device_type="accel"):
        inside = draw()
    assert draw() == inside


def test_bad_states_are_refused():
    for state in (torch.zeros(15, dtype=torch.uint8), torch.zeros(2, dtype=torch.int64)):
        before = torch.accel.get_rng_state()
        with pytest.raises((RuntimeError, TypeError)):
            torch.accel.set_rng_state(state)
        assert torch.equal(torch.accel.get_rng_state(), before)
    with pytest.raises(ValueError, match="one RNG state a device"):
        torch.accel.set_rng_state_all([])


def test_all_states():
    states = torch.accel.get_rng_state_all()
    torch.accel.manual_seed_all(12)
    torch.accel.set_rng_state_all(states)
    for index, state in enumerate(states):
        assert torch.equal(torch.accel.get_rng_state(index), state)


def test_random_seeds():
    assert torch.accel.seed() != torch.accel.seed()
    chosen = torch.accel.seed_all()
    assert [g.initial_seed() for g in torch.accel.default_generators] == [chosen] * (
        torch.accel.device_count()
    )


def test_no_warning_from_manual_seed(recwarn):
    torch.manual_seed(3)
    assert not [w for w in recwarn if "does not take effect" in str(w.message)]


def test_dropout():
    torch.manual_seed(3)
    x = torch.full((10_000,), 1.0).to("accel")
    y = torch.nn.functional.dropout(x, 0.25)
    torch.manual_seed(3)
    assert torch.equal(y.cpu(), torch.nn.functional.dropout(x, 0.25).cpu())
    kept = y.cpu() != 0
    assert abs(kept.float().mean().item() - 0.75) < 0.03
    assert torch.allclose(y.cpu()[kept], torch.tensor(1 / 0.75))
