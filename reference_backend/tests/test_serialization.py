"""Saving, loading and copying what is on the device."""

import copy
import io
import pickle

import pytest
import torch


def round_trip(obj, **kwargs):
    buffer = io.BytesIO()
    torch.save(obj, buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=True, **kwargs)


def test_save_and_load():
    for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64):
        x = (torch.arange(6) % 2).to(dtype).reshape(2, 3).to("accel:1")
        y = round_trip(x)
        assert y.device == torch.device("accel:1") and y.dtype == dtype
        assert torch.equal(y.cpu(), x.cpu())


def test_views_share_their_storage_after_loading():
    base = torch.arange(6.0).to("accel")
    loaded, view = round_trip([base, base[2:]])
    assert loaded.untyped_storage().data_ptr() == view.untyped_storage().data_ptr()
    assert view.storage_offset() == 2 and view.cpu().tolist() == [2.0, 3.0, 4.0, 5.0]
    transposed = round_trip(torch.arange(6.0).reshape(2, 3).to("accel").t())
    assert transposed.stride() == (1, 3)


def test_map_location():
    x = torch.arange(3.0)
    assert round_trip(x, map_location="accel").device == torch.device("accel:0")
    assert round_trip(x, map_location=torch.device("accel:1")).device == torch.device("accel:1")
    assert round_trip(x.to("accel"), map_location="cpu").device.type == "cpu"
    moved = round_trip(x.to("accel:0"), map_location={"accel:0": "accel:1"})
    assert moved.device == torch.device("accel:1") and moved.cpu().tolist() == [0.0, 1.0, 2.0]


def test_device_that_does_not_exist():
    with pytest.raises(RuntimeError, match="device_count"):
        round_trip(torch.arange(3.0), map_location="accel:7")


def test_state_dict():
    module = torch.nn.Linear(3, 2).to("accel")
    other = torch.nn.Linear(3, 2).to("accel")
    other.load_state_dict(round_trip(module.state_dict()))
    assert torch.equal(other.weight.cpu(), module.weight.cpu())


def test_copies_of_objects():
    x = torch.arange(4.0).to("accel")
    shared = [x, x[1:]]
    for y, view in (copy.deepcopy(shared), pickle.loads(pickle.dumps(shared))):
        assert y.device == x.device and y.cpu().tolist() == x.cpu().tolist()
        assert y.data_ptr() != x.data_ptr()
        y.copy_(torch.zeros(4))
        assert view.cpu().tolist() == [0.0, 0.0, 0.0] or view.data_ptr() != y.data_ptr() + 4
    assert x.cpu().tolist() == [0.0, 1.0, 2.0, 3.0]


def test_dlpack():
    from torch.utils.dlpack import from_dlpack, to_dlpack

    x = torch.arange(4.0).to("accel")
    y = from_dlpack(to_dlpack(x))
    assert y.device == x.device and y.data_ptr() == x.data_ptr()
