"""Names of JAX's fusion into kernels, which rewrites kernels of accelerators."""

from __future__ import annotations

from .accelerators import needs, only_on

_BACKEND = "an accelerator's compiler"


class BlockIndexTransform:
    """A block spec whose index map is made of another's."""

    def __init__(self, *args: object, **kwargs: object):
        needs("BlockIndexTransform", _BACKEND)


class Fusion:
    """A function that a kernel takes in."""

    def __init__(self, *args: object, **kwargs: object):
        needs("Fusion", _BACKEND)


class custom_fusion:
    """A function with rules of its own for fusion."""

    def __init__(self, fun: object):
        needs("custom_fusion", _BACKEND)


evaluate = only_on(_BACKEND, "evaluate", "f * allow_transpose=True")
fuse = only_on(_BACKEND, "fuse", "f=None * resolve_fusion_dtypes=True debug=False strict_mode=True")
fusible = only_on(_BACKEND, "fusible", "f=None * output_fusion_prefix=True")
get_fusion_values = only_on(_BACKEND, "get_fusion_values", "fusion *args **kwargs")
get_stateful_input_fusion_values = only_on(_BACKEND, "get_stateful_input_fusion_values", "fusion *args **kwargs")
get_stateful_output_fusion_values = only_on(_BACKEND, "get_stateful_output_fusion_values", "fusion *args **kwargs")
make_scalar_prefetch_handler = only_on(_BACKEND, "make_scalar_prefetch_handler", "*args")
pull_block_spec = only_on(_BACKEND, "pull_block_spec", "f out_block_specs * scalar_prefetch_handler=None grid_len=None "
                          "strict_mode=True")
push_block_spec = only_on(_BACKEND, "push_block_spec", "f *in_spec_args **in_spec_kwargs")
