"""Errors of queued kernels: raised at the next synchronisation, then gone."""

import pytest
import torch


def queue_an_error(device: str = "accel:0") -> None:
    """An index out of range, which only the kernel can see."""
    table = torch.arange(4.0).to(device)
    index = torch.tensor([0, 9]).to(device)
    torch.accel._sleep(20)
    torch.index_select(table, 0, index)


SYNCHRONISE = {
    "device": lambda x: torch.accel.synchronize(),
    "accelerator": lambda x: torch.accelerator.synchronize(),
    "stream": lambda x: torch.accel.current_stream().synchronize(),
    "event": lambda x: torch.accel.current_stream().record_event().synchronize(),
    "copy to the host": lambda x: x.cpu(),
    "copy to the device": lambda x: torch.arange(3).to("accel"),
    "item": lambda x: x[0].item(),
}


@pytest.mark.parametrize("how", SYNCHRONISE)
def test_surfaces_at_the_next_synchronisation_only(how):
    x = torch.arange(3).to("accel")
    queue_an_error()  # does not raise
    with pytest.raises(torch.AcceleratorError, match=r"index_select.*out of range|index_select"):
        SYNCHRONISE[how](x)
    SYNCHRONISE[how](x)
    torch.accel.synchronize()
    assert (x + 1).cpu().tolist() == [1, 2, 3]


def test_is_a_runtime_error_with_a_code():
    queue_an_error()
    with pytest.raises(RuntimeError) as caught:
        torch.accel.synchronize()
    assert caught.value.error_code != 0


def test_of_one_device_is_not_anothers():
    queue_an_error("accel:1")
    torch.accel.default_stream(1).query()
    torch.accel.synchronize(0)
    with pytest.raises(torch.AcceleratorError):
        torch.accel.synchronize(1)


def test_work_behind_an_error_runs():
    x = torch.arange(3).to("accel")
    queue_an_error()
    y = x + 1
    with pytest.raises(torch.AcceleratorError):
        torch.accel.synchronize()
    assert y.cpu().tolist() == [1, 2, 3]


def test_negative_sleep_is_refused():
    with pytest.raises(ValueError, match="not negative"):
        torch.accel._sleep(-1)
