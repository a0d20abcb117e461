"""Judging operators that draw random numbers."""

from __future__ import annotations

import torch
from torch.testing._internal import common_methods_invocations

from conformance.harness import random


def draws(op):
    """A function of a seed, as judge_draws wants it."""

    def draw(seed):
        with random.seeded(seed):
            return [op(torch.empty(50))]

    return draw


def test_drawing_is_noticed_and_undone():
    state = torch.get_rng_state()
    with random.watch_draws() as watch:
        torch.rand(3)
    assert watch.drew
    assert torch.get_rng_state().equal(state)
    with random.watch_draws() as watch:
        torch.ones(3).sum()
    assert not watch.drew


def test_drawing_inside_opinfos_seed_is_noticed():
    dropout = next(
        op for op in common_methods_invocations.op_db if op.name == "nn.functional.dropout"
    )
    with random.watch_draws() as watch:
        dropout(torch.ones(9), p=0.5, training=True)
    assert watch.drew
    with random.watch_draws() as watch:
        dropout(torch.ones(9), p=0.5, training=False)
    assert not watch.drew


def test_opinfos_seed_does_not_need_the_devices_generator(monkeypatch):
    def fail(*_args):
        raise AssertionError("the device's generator state was asked for")

    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", fail)
    result = common_methods_invocations.wrapper_set_seed(torch.rand, 3)
    assert result.equal(common_methods_invocations.wrapper_set_seed(torch.rand, 3))


def test_the_same_distribution_passes_whatever_the_sequence():
    other = draws(lambda t: 1 - t.uniform_())
    assert not random.judge_draws(other, draws(lambda t: t.uniform_()), seedable=True)
    heavy = draws(lambda t: -t.cauchy_())
    assert not random.judge_draws(heavy, draws(lambda t: t.cauchy_()), seedable=True)


def judged(op, against):
    return " ".join(random.judge_draws(draws(op), draws(against), seedable=True))


def test_wrong_distributions_are_noticed():
    assert "CPU's" in judged(lambda t: t.uniform_(0, 1.3), lambda t: t.uniform_())
    assert "CPU's" in judged(lambda t: t.normal_(0, 3), lambda t: t.normal_(0, 9))
    assert "CPU's" in judged(lambda t: t.bernoulli_(0.6), lambda t: t.bernoulli_(0.4))
    assert "NaN" in judged(lambda t: t.uniform_().log().sqrt(), lambda t: t.uniform_())


def test_results_that_differ_in_rounding_alone_pass():
    nearly = draws(lambda t: 3 + 1e-7 * t.uniform_())
    assert not random.judge_draws(draws(lambda t: t.fill_(3)), nearly, seedable=True)
    assert "CPU's" in judged(lambda t: t.fill_(3.1), lambda t: 3 + 1e-7 * t.uniform_())


def test_elements_that_are_never_drawn_are_noticed():
    def partly(t):
        t.fill_(0.5)[:25].uniform_()
        return t

    assert "25 of 50 elements are the same" in judged(partly, lambda t: t.uniform_())


def test_a_seed_that_does_not_repeat_is_noticed():
    def unseeded(_seed):
        return [torch.rand(50)]

    problems = random.judge_draws(unseeded, draws(lambda t: t.uniform_()), seedable=True)
    assert problems == ["two calls with the same seed differ"]
    assert not random.judge_draws(unseeded, draws(lambda t: t.uniform_()), seedable=False)


def test_a_device_that_cannot_be_seeded_has_no_seeder():
    class Module:
        @staticmethod
        def manual_seed(_seed):
            raise NotImplementedError

    assert random.device_seeder(Module) is None
    assert random.device_seeder(None) is None
    assert random.device_seeder(torch) is torch.manual_seed
