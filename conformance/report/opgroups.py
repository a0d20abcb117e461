"""Operators grouped the way torch's documentation groups them.

Read from the chapters of the public documentation: ``torch`` (creation, indexing, random
sampling, pointwise, reduction, comparison, spectral, other, BLAS and LAPACK), ``torch.linalg``,
``torch.fft``, ``torch.special``, ``torch.masked``, ``torch.signal``, ``torch.sparse``,
``torch.Tensor`` and ``torch.nn.functional``. An operator that the documentation does not list
stands with the listed one that it implements. Names are OpInfo's; a ``*`` stands for any text.
"""

from __future__ import annotations

import fnmatch
import functools

UNGROUPED = "Not grouped"
"""Where :func:`group_of` puts a name that the table does not know."""

GROUPS: dict[str, str] = {
    "Creation": """
        arange as_strided complex empty empty_like empty_permuted empty_strided eye full full_like
        heaviside linspace logspace new_empty new_empty_strided new_full new_ones new_zeros ones
        ones_like polar scalar_tensor zeros zeros_like
    """,
    "Random sampling": """
        bernoulli cauchy exponential geometric log_normal multinomial normal rand_like randint
        randint_like randn randn_like uniform
    """,
    "Indexing, slicing, joining": """
        __getitem__ _chunk_cat _unsafe_masked_index _unsafe_masked_index_put_accumulate argwhere
        as_strided_scatter cat chunk column_stack conj diagonal_scatter dsplit dstack gather hsplit
        hstack index_add index_copy index_fill index_put index_reduce index_select masked_scatter
        masked_fill masked_select movedim narrow narrow_copy nonzero nonzero_static permute put
        reshape scatter scatter_add scatter_reduce select select_scatter slice slice_scatter split
        split_with_sizes squeeze stack t take take_along_dim tensor_split tile transpose unbind
        unravel_index unsafe_chunk unsafe_split unsqueeze vsplit vstack where
    """,
    "Views, copies and conversion (torch.Tensor)": """
        H T alias_copy as_strided_copy bfloat16 bool byte cdouble cfloat chalf char contiguous
        diagonal_copy double expand expand_as expand_copy fill float half int item long mH mT
        permute_copy repeat reshape_as resize_ resize_as_ short split_with_sizes_copy squeeze_copy
        sum_to_size t_copy to to_sparse transpose_copy unbind_copy unflatten unfold unfold_copy
        unsqueeze_copy view view_as view_copy zero_
    """,
    "Pointwise": """
        __radd__ __rand__ __rdiv__ __rmod__ __rmul__ __ror__ __rpow__ __rsub__ __rxor__ abs acos
        acosh add addcdiv addcmul angle asin asinh atan atan2 atanh bitwise_and bitwise_left_shift
        bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil clamp clamp_max clamp_min
        conj_physical copysign cos cosh deg2rad digamma div erf erfc erfinv exp exp2 expm1
        float_power floor floor_divide fmod frac frexp gradient hypot i0 igamma igammac imag ldexp
        lerp lgamma log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or
        logical_xor logit mul mvlgamma nan_to_num neg nextafter polygamma positive pow rad2deg real
        reciprocal remainder round rsqrt rsub sgn sigmoid sign signbit sin sinc sinh sqrt square
        sub tan tanh true_divide trunc xlogy jiterator_*
    """,
    "Reduction": """
        all amax amin aminmax any argmax argmin count_nonzero dist hash_tensor logsumexp max mean
        median min mode nanmean nanmedian nanquantile nansum norm prod quantile std std_mean sum
        unique unique_consecutive var var_mean _segment_reduce
    """,
    "Comparison": """
        allclose argsort eq equal fmax fmin ge gt isclose isfinite isin isinf isnan isneginf
        isposinf isreal kthvalue le lt maximum minimum msort ne sort topk
    """,
    "Spectral": "stft istft",
    "torch.fft": "fft.*",
    "Other": """
        atleast_1d atleast_2d atleast_3d bincount block_diag broadcast_shapes broadcast_tensors
        broadcast_to bucketize cartesian_prod cdist clone combinations corrcoef cov cross cummax
        cummin cumprod cumsum cumulative_trapezoid diag diag_embed diagflat diagonal diff einsum
        flatten flip fliplr flipud gcd histc histogram histogramdd kron lcm logcumsumexp meshgrid
        ravel renorm repeat_interleave resolve_conj resolve_neg roll rot90 searchsorted tensordot
        trace tril tril_indices triu triu_indices view_as_complex view_as_real trapezoid trapz
    """,
    "BLAS and LAPACK": """
        __rmatmul__ addbmm addmm addmv addr baddbmm bmm cholesky cholesky_inverse cholesky_solve
        dot geqrf inner logdet lu lu_solve lu_unpack matmul matrix_exp mm mv ormqr outer
        pca_lowrank pinverse qr svd svd_lowrank triangular_solve vdot torch._scaled_mm
        torch._scaled_mm_v2
    """,
    "torch.linalg": "linalg.*",
    "torch.special": "special.*",
    "torch.masked": "masked.*",
    "torch.signal": "signal.*",
    "torch.sparse": "sparse.*",
    "nn.functional: convolution": "nn.functional.conv* nn.functional.unfold",
    "nn.functional: pooling": "nn.functional.*pool* max_pool2d_with_indices_backward",
    "nn.functional: attention": """
        nn.functional.scaled_dot_product_attention nn.functional.multi_head_attention_forward
        torch.ops.aten._efficient_attention_forward torch.ops.aten._flash_attention_forward
    """,
    "nn.functional: activation": """
        _softmax_backward_data log_softmax softmax torch.ops.aten._safe_softmax.default
        nn.functional.celu nn.functional.elu nn.functional.gelu nn.functional.glu
        nn.functional.hardshrink nn.functional.hardsigmoid nn.functional.hardswish
        nn.functional.hardtanh nn.functional.leaky_relu nn.functional.logsigmoid
        nn.functional.mish nn.functional.prelu nn.functional.relu nn.functional.relu6
        nn.functional.rrelu nn.functional.selu nn.functional.silu nn.functional.softmin
        nn.functional.softplus nn.functional.softshrink nn.functional.softsign
        nn.functional.tanhshrink nn.functional.threshold
    """,
    "nn.functional: normalization": """
        _batch_norm_with_update _native_batch_norm_legit native_batch_norm native_group_norm
        native_layer_norm nn.functional.*_norm nn.functional.normalize
    """,
    "nn.functional: linear": "nn.functional.linear nn.functional.bilinear",
    "nn.functional: dropout": "nn.functional.*dropout* native_dropout_backward",
    "nn.functional: sparse": """
        nn.functional.embedding nn.functional.embedding_bag nn.functional.one_hot
    """,
    "nn.functional: distance": """
        nn.functional.cosine_similarity nn.functional.pairwise_distance nn.functional.pdist
    """,
    "nn.functional: loss": """
        nn.functional.*_loss nn.functional.binary_cross_entropy
        nn.functional.binary_cross_entropy_with_logits nn.functional.cross_entropy
        nn.functional.linear_cross_entropy nn.functional.kl_div
    """,
    "nn.functional: vision": """
        _upsample_bilinear2d_aa constant_pad_nd grid_sampler_2d grid_sampler_3d
        nn.functional.channel_shuffle nn.functional.grid_sample nn.functional.interpolate
        nn.functional.pad nn.functional.pixel_* nn.functional.upsample_*
    """,
    "Foreach": "_foreach_*",
}


@functools.cache
def groups_of(op: str) -> tuple[str, ...]:
    """All groups whose patterns match an operator's name; one, if the table is right."""
    return tuple(
        group
        for group, patterns in GROUPS.items()
        if any(fnmatch.fnmatchcase(op, pattern) for pattern in patterns.split())
    )


def group_of(op: str) -> str:
    """The group that an operator stands in, :data:`UNGROUPED` for an unknown name."""
    return next(iter(groups_of(op)), UNGROUPED)
