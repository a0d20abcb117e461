"""How much to run: the named subsets of the plan that ``--profile`` selects."""

from __future__ import annotations

from conformance.harness.cells import Cell

PROFILES = ("smoke", "core", "full")
"""From the smallest to everything. ``core`` leaves out checks meant for ``full`` alone, of which
there are none so far."""

_SMOKE_DTYPES = frozenset(("", "float32", "bfloat16", "int64", "bool", "complex64"))

# One or more of each kind: factories, copies, views, elementwise, comparison, reductions, scans,
# sorting, indexing, linear algebra, FFT, convolution, pooling, norms, losses, random, foreach.
_SMOKE_OPS = frozenset((
    "zeros", "arange", "full_like", "empty_like", "to", "contiguous", "clone",
    "view", "transpose", "expand", "as_strided", "cat", "split", "stack",
    "add", "sub", "mul", "div", "pow", "exp", "sqrt", "abs", "where", "clamp", "eq", "bitwise_and",
    "sum", "mean", "amax", "argmax", "any", "std", "cumsum", "sort", "topk", "unique",
    "index_select", "gather", "scatter_add", "masked_select", "nonzero", "index_put",
    "matmul", "mm", "bmm", "addmm", "linalg.solve", "linalg.svd", "fft.fft",
    "nn.functional.linear", "nn.functional.conv2d", "nn.functional.max_pool2d",
    "nn.functional.layer_norm", "nn.functional.batch_norm", "nn.functional.embedding",
    "nn.functional.relu", "nn.functional.gelu", "softmax", "log_softmax",
    "nn.functional.cross_entropy", "nn.functional.scaled_dot_product_attention",
    "nn.functional.interpolate", "normal", "rand_like", "nn.functional.dropout", "_foreach_add",
))  # fmt: skip


def includes(profile: str, cell: Cell) -> bool:
    """Whether the profile runs the cell."""
    if profile != "smoke":
        return True
    return cell.dtype in _SMOKE_DTYPES and cell.op in _SMOKE_OPS
