"""The list of generic operators: running this derives generic_ops.txt from the dispatcher.

Listed is every aten operator with a kernel for the CPU (composites that work on any device need
none) and none of its own in this backend. The build only turns the text into a C++ include
(`write_include`, called by setup.py) and does not ask torch. Operators that get a kernel of their
own later drop out at import; run this script to drop them here too.
"""

import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIST = HERE / "generic_ops.txt"
INCLUDE = HERE / "generated" / "generic_ops.inc"

# Section of the list -> enumerator of torch_accel::generic::Source, and what it says.
SECTIONS = {
    "meta": ("kMeta", "Metadata from PyTorch's shape functions; asynchronous."),
    "written": (
        "kWritten",
        "No shape function, none needed: arguments are written in place; asynchronous.",
    ),
    "first": (
        "kFirstLike",
        "No shape function: every output is like the first tensor; asynchronous.",
    ),
    "dry run": (
        "kDryRun",
        "No shape function as right as a trial of the CPU kernel on made-up values; asynchronous.",
    ),
    "fallback": (
        "kFallback",
        "Output shapes depend on data, or PyTorch has no shape function: the caller waits.",
    ),
}

# Not for a dense device tensor, or without meaning here.
EXCLUDED = re.compile(
    r"quantize|_affine|nested|mkldnn|sparse|sspaddmm|spdiags|_jagged|_test_|_foobar|_make_dep_token"
    r"|from_file|^set_|^is_set_to|^empty\.|^empty_strided|^as_strided|^view$|^_reshape_alias|^unfold$"
    r"|^resize_|_local_scalar_dense|^_copy_from|record_stream|^native_dropout$|_fused_sdp_choice"
    r"|qscheme|q_per_channel|q_scale|q_zero|int_repr|_coalesce|^narrow_copy$|_efficientzerotensor"
)
# Not registered for the CPU alone, yet better run whole than taken apart.
ADDED = ["convolution", "convolution_backward", "_convolution", "linalg_lstsq", "mode.values"]
DATA_DEPENDENT = re.compile(
    r"^((nonzero|_?unique\w*|masked_select|bincount|equal|repeat_interleave|linalg_lstsq)(\.\w+)?"
    r"|_ctc_loss\.Tensor)$"
)
# Shapes do not depend on data, and the shape function is missing, or promises what the CPU kernel
# does not keep (statistics, strides), or misses checks of the arguments.
DRY_RUN = re.compile(
    r"^(_?native_batch_norm|native_layer_norm|_native_batch_norm_legit|_batch_norm_with_update|_embedding_bag"
    r"|_embedding_bag_forward_only|_?histogram\w*|_ctc_loss|_ctc_loss_backward|geqrf|nonzero_static"
    r"|linalg_eig|_fft_r2c|_fft_c2r|_fft_c2c|max_unpool\dd|_aminmax|_logcumsumexp|_add_relu|_transform_bias_rescale_qkv"
    r"|_compute_linear_combination|adaptive_avg_pool\dd\w*|batch_norm_update_stats|glu_backward_jvp"
    r"|fractional_max_pool3d_backward|multi_margin_loss_backward|multilabel_margin_loss_\w+"
    r"|_?slow_conv\w*|uniform_|complex|masked_scatter_|aminmax|take|multinomial|bucketize"
    r"|masked_fill_)(\.\w+)?$"
    r"|^bernoulli\.out$"
)
FIRST_LIKE = {
    "_logcumsumexp", "_masked_softmax", "_masked_softmax_backward", "_standard_gamma_grad",
    "_dirichlet_grad", "_sample_dirichlet", "binomial", "glu_jvp", "linalg__powsum",
}  # fmt: skip


def read_list():
    """Names by section, in the order of the file."""
    names, section = {s: [] for s in SECTIONS}, None
    for number, line in enumerate(LIST.read_text().splitlines(), 1):
        line = line.partition("#")[0].strip()
        if line.startswith("["):
            section = line.strip("[]")
            if section not in SECTIONS:
                raise ValueError(
                    f"{LIST.name}:{number}: section {line} is not one of {[*SECTIONS]}"
                )
        elif line:
            if section is None:
                raise ValueError(f"{LIST.name}:{number}: {line} stands before the first section")
            names[section].append(line)
    every = [n for group in names.values() for n in group]
    if twice := {n for n in every if every.count(n) > 1}:
        raise ValueError(f"{LIST.name}: listed twice: {sorted(twice)}")
    return names


def write_include():
    """Writes generated/generic_ops.inc if it would change (so that nothing is rebuilt in vain)."""
    lines = [
        f'    {{"{name}", Source::{SECTIONS[section][0]}}},'
        for section, names in read_list().items()
        for name in names
    ]
    text = "// Made from generic_ops.txt by generic_ops.py.\n" + "\n".join(lines) + "\n"
    INCLUDE.parent.mkdir(exist_ok=True)
    if not INCLUDE.exists() or INCLUDE.read_text() != text:
        INCLUDE.write_text(text)


def hand_written():
    """Names registered by TORCH_LIBRARY_IMPL blocks of this backend."""
    found = set()
    for source in HERE.rglob("*.cpp"):
        found |= set(re.findall(r'\b(?:m|library)\.impl\(\s*"([\w.]+)"', source.read_text()))
    return found


def derive():
    """Writes generic_ops.txt from the dispatcher's tables of the torch that is installed."""
    import torch

    def has(name, key):
        return torch._C._dispatch_has_kernel_for_dispatch_key("aten::" + name, key)

    own = hand_written()
    names = {section: [] for section in SECTIONS}
    for qualified in sorted(torch._C._dispatch_get_all_op_names()):
        name = qualified.removeprefix("aten::")
        if name == qualified or name in own or EXCLUDED.search(name):
            continue
        if not has(name, "CPU") and name not in ADDED:
            continue
        schema = torch._C._get_schema(qualified.partition(".")[0], qualified.partition(".")[2])
        types = " ".join(str(a.type) for a in schema.arguments)
        if "Storage" in types or "CellParams" in types:
            continue
        shape_function = any(
            has(name, key)
            for key in (
                "Meta",
                "CompositeExplicitAutograd",
                "CompositeExplicitAutogradNonFunctional",
                "CompositeImplicitAutograd",
            )
        )
        written = all(r.alias_info is not None and r.alias_info.is_write for r in schema.returns)
        is_out = any(a.is_out for a in schema.arguments)
        if DATA_DEPENDENT.search(name):
            section = "fallback"
        elif DRY_RUN.search(name):
            section = "dry run"
        elif shape_function:
            section = "meta"
        elif name in FIRST_LIKE:
            section = "first"
        elif written and not is_out:
            section = "written"
        else:
            section = "fallback"
        names[section].append(name)
    lines = ["# The operators of the generic mechanism (Generic.h). Derived by generic_ops.py.", ""]
    for section, group in names.items():
        lines += [f"[{section}]  # {SECTIONS[section][1]}", *group, ""]
    LIST.write_text("\n".join(lines).rstrip() + "\n")
    print({section: len(group) for section, group in names.items()})


if __name__ == "__main__":
    derive()
