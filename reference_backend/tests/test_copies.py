"""Copies: direction x dtype x layout, overlap, broadcast, blocking or not; the CPU is the judge."""

import itertools
import time
import warnings

import pytest
import torch

DTYPES = [
    torch.bool,
    torch.uint8,
    torch.int16,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
    torch.complex128,
    torch.float8_e4m3fn,
    torch.uint16,
]

# Each makes a view, of a shape of 24 elements, over a storage that the test provides.
LAYOUTS = {
    "contiguous": lambda flat: flat[:24].view(2, 3, 4),
    "offset": lambda flat: flat[5:29].view(2, 3, 4),
    "transposed": lambda flat: flat[:24].view(4, 3, 2).permute(2, 1, 0),
    "sliced": lambda flat: flat[:48].view(2, 3, 8)[:, :, ::2],
    "permuted slice": lambda flat: flat[3:51].view(4, 6, 2).permute(2, 1, 0)[:, ::2],
}
DIRECTIONS = {
    "host to device": ("cpu", "accel:0"),
    "device to host": ("accel:0", "cpu"),
    "within a device": ("accel:0", "accel:0"),
    "between devices": ("accel:0", "accel:1"),
}


def values(dtype: torch.dtype, n: int = 64) -> torch.Tensor:
    flat = torch.arange(n) % 7
    if dtype.is_complex:
        return torch.complex(flat.double(), -flat.double()).to(dtype)
    return flat.to(dtype)


def on(device: str, flat: torch.Tensor, layout: str) -> torch.Tensor:
    return LAYOUTS[layout](flat.to(device))


def bits(tensor: torch.Tensor) -> list:
    return tensor.cpu().contiguous().view(torch.uint8).flatten().tolist()


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_layout(direction, dtype):
    source_device, target_device = DIRECTIONS[direction]
    for source_layout, target_layout in itertools.product(LAYOUTS, LAYOUTS):
        source_flat, target_flat = values(dtype), torch.zeros(64, dtype=dtype)
        source = on(source_device, source_flat, source_layout)
        target_storage = target_flat.to(target_device)
        target = LAYOUTS[target_layout](target_storage)
        expected = LAYOUTS[target_layout](target_flat)
        assert target.copy_(source) is target
        expected.copy_(LAYOUTS[source_layout](source_flat))
        # The whole storage: nothing beside the view may have been written.
        assert bits(target_storage) == bits(target_flat), (source_layout, target_layout)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("layout", ["contiguous", "permuted slice"])
def test_every_cast(direction, layout):
    source_device, target_device = DIRECTIONS[direction]
    for source_dtype, target_dtype in itertools.product(DTYPES, DTYPES):
        if torch.float8_e4m3fn in (source_dtype, target_dtype) and (
            source_dtype.is_complex or target_dtype.is_complex
        ):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # complex to real, as on the CPU
            source = on(source_device, values(source_dtype), layout)
            target = torch.empty(2, 3, 4, dtype=target_dtype, device=target_device).copy_(source)
            expected = LAYOUTS[layout](values(source_dtype)).to(target_dtype)
        assert bits(target) == bits(expected), (source_dtype, target_dtype)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_conj_and_neg(direction):
    source_device, target_device = DIRECTIONS[direction]
    z = values(torch.complex64)
    views = {
        "conj": lambda t: t.conj(),
        "neg": lambda t: t.conj().imag,
        "physical": lambda t: t,
    }
    for source_view, target_view in itertools.product(views.values(), views.values()):
        source = source_view(z.to(source_device))
        for dtype in (torch.complex64, torch.complex128):
            target_storage = torch.zeros(64, dtype=dtype, device=target_device)
            expected_storage = torch.zeros(64, dtype=dtype)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                target_view(target_storage).copy_(source)
                target_view(expected_storage).copy_(source_view(z))
            assert bits(target_storage) == bits(expected_storage)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_broadcast_zero_sizes_and_scalars(direction):
    source_device, target_device = DIRECTIONS[direction]
    for source_shape, target_shape in [
        ((1,), (2, 3)),
        ((), (4,)),
        ((3, 1), (2, 3, 4)),
        ((), ()),
        ((1,), ()),
        ((0,), (0,)),
        ((1, 0), (5, 0)),
        ((2, 0, 3), (2, 0, 3)),
    ]:
        source = torch.arange(max(1, torch.Size(source_shape).numel()), dtype=torch.float32)
        source = source[: torch.Size(source_shape).numel()].reshape(source_shape)
        expected = torch.full(target_shape, -1.0)
        target = expected.to(target_device)
        if len(source_shape) > len(target_shape):
            with pytest.raises(RuntimeError):
                expected.copy_(source)
            with pytest.raises(RuntimeError):
                target.copy_(source.to(source_device))
            continue
        target.copy_(source.to(source_device))
        expected.copy_(source)
        assert target.cpu().tolist() == expected.tolist()


def test_expanded_source():
    source = torch.arange(3.0).to("accel").unsqueeze(1).expand(3, 4)
    assert source.cpu().tolist() == torch.arange(3.0).unsqueeze(1).expand(3, 4).tolist()
    assert source.clone().cpu().tolist() == source.cpu().tolist()
    one = torch.arange(1.0, 2.0).to("accel").expand(5)
    assert one.cpu().tolist() == [1.0] * 5


def test_shape_errors_are_the_cpus():
    for source_shape, target_shape in [((3,), (4,)), ((2, 3), (3,))]:
        with pytest.raises(RuntimeError) as cpu:
            torch.empty(target_shape).copy_(torch.empty(source_shape))
        with pytest.raises(RuntimeError) as accel:
            torch.empty(target_shape, device="accel").copy_(torch.empty(source_shape))
        assert str(accel.value) == str(cpu.value)


def test_overlap_behaves_as_on_the_cpu():
    def shift(flat):
        return flat[1:].copy_(flat[:-1])

    def expanded(flat):
        return flat[:1].expand(4).copy_(flat[:4])

    def onto_itself(flat):
        return flat[2:6].copy_(flat[2:6])

    def transposed(flat):
        square = flat[:16].view(4, 4)
        return square.copy_(square.t())

    def interleaved(flat):
        return flat[::2].copy_(flat[1::2])

    for case in (shift, expanded, onto_itself, transposed, interleaved):
        outcomes = []
        for device in ("cpu", "accel"):
            flat = torch.arange(32.0).to(device)
            try:
                case(flat)
                outcomes.append(flat.cpu().tolist())
            except RuntimeError as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1], case.__name__


def test_pageable_source_may_change_at_once():
    source = torch.arange(1 << 14)
    for view in (source, source[::2], source.view(128, 128).t()):
        expected = view.clone()
        torch.accel._sleep(50)
        begin = time.perf_counter()
        x = view.to("accel", non_blocking=True)
        assert time.perf_counter() - begin < 0.05
        kept = source.clone()
        source.fill_(-1)
        assert torch.equal(x.cpu(), expected)
        source.copy_(kept)


def test_blocking_copies_wait():
    x = torch.arange(8).to("accel")
    for copy in (lambda: torch.arange(8).to("accel"), x.cpu, x[0].item):
        torch.accel._sleep(50)
        copy()
        assert torch.accel.current_stream().query()


def test_pageable_device_to_host_always_waits():
    x = torch.arange(8).to("accel")
    torch.accel._sleep(50)
    assert torch.full((8,), -1).copy_(x, non_blocking=True).tolist() == list(range(8))


def test_copies_within_a_device_do_not_wait():
    x = torch.arange(8).to("accel")
    torch.accel._sleep(100)
    y = x.clone()
    z = x.to(torch.float32)
    assert not torch.accel.current_stream().query()
    assert y.cpu().tolist() == z.cpu().tolist() == list(range(8))


def test_copies_between_devices_keep_both_streams_order():
    x = torch.full((1 << 12,), 1).to("accel:0")
    y = torch.full((1 << 12,), -1).to("accel:1")
    ones = torch.full((1 << 12,), 5).to("accel:1")
    torch.accel._sleep(50)  # on device 0: what y.copy_ below waits for
    with torch.accel.device(1):
        torch.accel._sleep(100)
        y.copy_(ones)  # earlier on device 1: must not overwrite the copy below
    y.copy_(x)
    seen = y.clone()  # later on device 1
    assert seen.cpu().unique().tolist() == [1]


def test_item_of_every_dtype():
    for dtype in DTYPES:
        value = values(dtype)[3]
        assert value.to("accel").item() == value.item()
    z = torch.tensor(1 + 2j)
    assert z.to("accel").conj().item() == 1 - 2j
    assert z.to("accel").conj().imag.item() == -2


def test_complex_to_real_warns_as_the_cpu_does(run_python):
    source = """
        import torch, torch_accel, warnings
        x = torch.ones(2, dtype=torch.complex64, device="cpu").to({device!r})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.empty(2, device={device!r}).copy_(x)
        print([str(w.message).split(" (")[0] for w in caught])
    """
    cpu, accel = (run_python(source.format(device=d)) for d in ("cpu", "accel"))
    assert cpu.stdout and cpu.stdout == accel.stdout, accel.stderr


@pytest.mark.parametrize("device", ["accel:0", "accel:1"])
def test_copy_on_write_storage(device):
    x = torch.arange(4).to(device)
    for source in (torch.arange(4, 8), torch.arange(4.0, 8.0), torch.arange(4, 8).to("accel:0")):
        y = torch._lazy_clone(x)
        y.copy_(source)
        assert x.cpu().tolist() == [0, 1, 2, 3]
        assert y.cpu().tolist() == [4, 5, 6, 7]
        assert y.untyped_storage().device == torch.device(device)


def test_requires_grad_goes_through():
    x = torch.arange(3.0, requires_grad=True)
    y = x.to("accel")
    y.backward(torch.arange(3.0).to("accel"))
    assert x.grad.tolist() == [0.0, 1.0, 2.0]
    assert x.grad.device.type == "cpu"


def test_unsupported_partners_are_refused():
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.arange(3.0).to_sparse().to("accel")
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.empty(3, device="accel").copy_(torch.empty(3, device="meta"))
