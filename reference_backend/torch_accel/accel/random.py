"""Random numbers: each device's default generator.

A generator's state is its seed and an offset, both on the host: no function here waits for the
device. Every kernel that draws moves the offset on.
"""

import torch

from .. import _C
from ._utils import checked_index

default_generators = tuple(_C.default_generator(index) for index in range(_C.device_count()))


def get_rng_state(device="accel") -> torch.Tensor:
    """State of a device's default generator: a CPU uint8 tensor of 16 bytes (seed, offset)."""
    return default_generators[checked_index(device)].get_state()


def get_rng_state_all() -> list[torch.Tensor]:
    """States of the default generators of all devices."""
    return [get_rng_state(index) for index in range(_C.device_count())]


def set_rng_state(new_state: torch.Tensor, device="accel") -> None:
    """Sets the state of a device's default generator, as get_rng_state returned it."""
    default_generators[checked_index(device)].set_state(new_state)


def set_rng_state_all(new_states) -> None:
    """Sets the states of the default generators of all devices; one state a device."""
    new_states = list(new_states)
    if len(new_states) != _C.device_count():
        raise ValueError(
            f"expected one RNG state a device ({_C.device_count()}), got {len(new_states)}"
        )
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def manual_seed(seed: int) -> None:
    """Seeds the current device's default generator."""
    default_generators[_C.current_device()].manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seeds the default generators of all devices."""
    for generator in default_generators:
        generator.manual_seed(int(seed))


def seed() -> int:
    """Seeds the current device's default generator at random, and returns the seed."""
    return default_generators[_C.current_device()].seed()


def seed_all() -> int:
    """Seeds the default generators of all devices with one random seed, and returns it."""
    chosen = seed()
    manual_seed_all(chosen)
    return chosen


def initial_seed() -> int:
    """Seed of the current device's default generator."""
    return default_generators[_C.current_device()].initial_seed()
