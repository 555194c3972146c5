"""What a lower floor is given by a higher one: all of it stands in the table here.

Imports run one way; what runs the other way is a name of this module. A lower floor reads `hooks.name` when it needs
it. The first reader loads the module that provides it, all later ones read an attribute of a module.

| hook | given by | used by | what it is |
|---|---|---|---|
| `lax` | `styrax.lax` | `transforms`, `lax` | the operations: for rules of families that need one another's |
| `numpy` | `styrax.numpy` | `numpy` | the functions on arrays |
| `by_default` | `core.arrays.explicit` | `core.types.avals` | the sharding of arrays of which nothing is said |
| `sharding_of_type` | `core.arrays.explicit` | `core.types.avals` | what the type of an array tells of its sharding |
| `is_replicated` | `core.arrays.explicit` | `core.types.avals` | whether it tells that there is none |
| `sharding_text` | `core.arrays.explicit` | `core.types.avals` | the dimensions of such a type as text |
| `axes_text` | `core.arrays.explicit` | `core.types.avals` | names of axes as text |
| `shards_of` | `core.arrays.shards` | `core.arrays.array` | the parts of an array that devices hold |
| `all_shards_of` | `core.arrays.shards` | `core.arrays.array` | the same with those of other processes |
| `devices_of_processes` | `processes.spanning` | `core.arrays.devices` | devices of several processes in place of one |
| `devices_of_plugin` | `xla.pjrt.many_devices` | `core.arrays.devices` | several devices of a plugin in place of one |
| `home_of_program` | `processes.spanning` | `transforms.machine_code` | devices of several processes, by a program |
| `home_of_operation` | `processes.spanning` | `core.arrays.moving` | the same for one operation |
| `equation_text` | `core.programs.text` | `core.programs.jaxpr` | an equation as text |
| `program_text` | `core.programs.text` | `core.programs.jaxpr` | a program as text |
| `serialized` | `core.programs.serial` | `core.programs.jaxpr` | a program as text that can be read back |
| `BatchTrace` | `transforms.batch` | `core.tracing.introspection` | the class of traces that map |
| `by_device` | `transforms.in_turn` | `transforms.batch` | what devices do one after the other |
| `mapped_aval` | `transforms.batch` | `core.types.avals` | the type of one example |
| `unmapped_aval` | `transforms.batch` | `core.types.avals` | the type of many examples |
| `zeros_like_aval` | `transforms.zeros` | `core.types.avals` | an array of zeros |
| `add_any` | `transforms.zeros` | `core.types.avals` | the sum of two tangents |
| `Ref` | `transforms.references` | `core.types.avals` | the class of references |
| `platforms_wanted` | `core.settings.wanted_platforms` | `core.arrays.backends` | platforms that the settings name |
| `plugin_backend` | `xla.pjrt.discovery` | `core.arrays.backends` | the backend of a platform that a plugin serves |
| `plugin_serves` | `xla.pjrt.discovery` | `core.arrays.backends` | whether a platform is among some names |
| `plugin_launcher` | `cpu.plugin_calls` | `xla` | starts programs of plugins without ctypes |
| `plugin_releaser` | `cpu.plugin_calls` | `xla` | lets go of their buffers without ctypes |
| `described_devices` | `xla.pjrt.described_devices` | `experimental` | devices that a plugin knows by a description |
| `plugin_report` | `xla.pjrt.report` | `styrax` | what there is of plugins, as lines |
| `apply_where_arguments_are` | `core.arrays.moving` | `core.arrays.backends` | runs a primitive where they are |
| `moved` | `core.arrays.moving` | `core.arrays.array` | an array on another device |
| `apply_stateful` | `transforms.machine_code` | `core.arrays.backends` | runs a primitive with programs inside |
| `explain` | `profiles.explanations` | `transforms.stages` | where the time of a compiled function goes |
| `on_summands` | `parallel.summand_programs` | `cpu` | a program without arrays that are still to be summed |
| `on_copies` | `parallel.differing_copies` | `transforms` | a program's code for arrays whose copies differ |
| `copies_in_scope` | `parallel.differing_copies` | `transforms.jit` | has programs be traced for such arrays |
| `reshard_p` | `lax.collectives.placing` | `transforms` | the primitive that changes how types say arrays are spread |
| `resummed` | `lax.collectives.placing` | `core.arrays.array` | an array that is to be summed along other axes |
| `auto_axes` | `parallel.axes` | `numpy` | functions inside which types tell nothing of some axes |
| `device_buffer` | `compat.former.arrays` | `core.arrays.array` | an array on one device, as older releases give it |
| `device_buffers` | `compat.former.arrays` | `core.arrays.array` | an array on each of its devices |
| `adapt_trace` | `extend.traces` | `core.tracing.trace` | prepares a library's class of traces |
| `trace_attribute` | `extend.traces` | `core.tracing.trace` | attributes of traces in older releases |
| `wrap_function` | `extend.linear_util` | `transforms` | a function as libraries' transformations expect it |
| `vary_alike` | `lax.collectives.casts` | `core.programs.primitive` | operands that vary along the same mesh axes |
| `varying` | `lax.collectives.casts` | `transforms` | a value that varies along mesh axes |
| `psum_invariant_p` | `lax.collectives.axis_reductions` | `lax.collectives.casts` | sums along mesh axes |
| `key_dtypes` | `lax.random_bits.prng` | `core.programs.serial` | the dtypes of random keys |
| `key_checked` | `experimental.key_reuse._core` | `transforms.jit` | code that checks that no key is used twice |
| `watch_keys` | `experimental.key_reuse._core` | `lax.random_bits` | has eager operations check it |
| `homes_of_primitives` | `lax` | `core.programs.serial` | modules of primitives that are loaded when these are used |
| `rule_between_devices` | `lax.collectives.replicas` | `xla` | the StableHLO rules of collectives |
| `rule_of_factorisation` | `lax.linalg.factorisation_rules` | `xla` | the StableHLO rules of factorisations |
| `stablehlo_text` | `xla.stablehlo` | `core.arrays.backends` | a program as a StableHLO module |
| `IrModule` | `xla.ir_module` | `transforms.stages` | that module as an object |
| `ir_bindings` | `xla.ir_module` | `interpreters` | classes by the names of MLIR's Python bindings |
| `readable` | `xla.assembly` | `transforms.stages`, `export` | that module's text in the dialects' own forms |
| `HloModule` | `xla.hlo_text` | `transforms.stages` | that module in XLA's notation |
| `StableHloModule` | `xla.stablehlo` | `interpreters` | a StableHLO module being printed |
| `StableHloValue` | `xla.stablehlo` | `interpreters` | the class of its values |
| `attribute_text` | `xla.literal_text` | `interpreters` | a value as an MLIR attribute |
| `element_type` | `xla.literal_text` | `interpreters` | the MLIR type of elements of a dtype |
| `type_text` | `xla.stablehlo` | `interpreters` | the MLIR type of an abstract value |

The methods and properties of arrays that are functions of `styrax.numpy` are in a table of their own, `METHODS`.
Backends, of which there may be many, are entered in `core.arrays.backends.modules` by their platforms' names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import names

if TYPE_CHECKING:
    from .. import lax as lax
    from .. import numpy as numpy

# module, relative to `styrax` -> the hooks it provides; "hook:its name there"
PROVIDERS = {
    "": "lax numpy",
    "core.arrays.explicit": "by_default is_replicated sharding_of_type sharding_text axes_text",
    "core.arrays.shards": "shards_of:shards all_shards_of:all_shards",
    "processes.spanning": "devices_of_processes:everyone home_of_program:home home_of_operation",
    "core.arrays.moving": "apply_where_arguments_are moved",
    "core.settings.wanted_platforms": "platforms_wanted:wanted",
    "xla.pjrt.discovery": "plugin_backend:backend plugin_serves:serves",
    "cpu.plugin_calls": "plugin_launcher:launcher plugin_releaser:releaser",
    "xla.pjrt.described_devices": "described_devices:described",
    "xla.pjrt.many_devices": "devices_of_plugin:together",
    "xla.pjrt.report": "plugin_report:lines",
    "core.programs.text": "equation_text:pp_eqn_standalone program_text:pp_jaxpr_text",
    "core.programs.serial": "serialized:to_text",
    "transforms.batch": "BatchTrace mapped_aval unmapped_aval",
    "transforms.in_turn": "by_device",
    "transforms.references": "Ref",
    "transforms.zeros": "add_any zeros_like_aval",
    "profiles.explanations": "explain",
    "transforms.machine_code": "apply_stateful:apply_primitive",
    "parallel.axes": "auto_axes",
    "parallel.summand_programs": "on_summands",
    "parallel.differing_copies": "on_copies copies_in_scope:in_scope",
    "lax.collectives.placing": "reshard_p resummed",
    "compat.former.arrays": "device_buffer device_buffers",
    "extend.traces": "adapt_trace trace_attribute",
    "extend.linear_util": "wrap_function:wrap_init",
    "lax.collectives.axis_reductions": "psum_invariant_p",
    "lax.collectives.casts": "vary_alike varying",
    "lax.random_bits.prng": "key_dtypes",
    "lax": "homes_of_primitives:_HOMES",
    "lax.collectives.replicas": "rule_between_devices",
    "lax.linalg.factorisation_rules": "rule_of_factorisation",
    "xla.stablehlo": (
        "StableHloModule:Module StableHloValue:Hlo stablehlo_text:module_text type_text"),
    "xla.assembly": "readable",
    "xla.hlo_text": "HloModule",
    "xla.ir_module": "IrModule ir_bindings:bindings",
    "xla.literal_text": "attribute_text element_type",
    "experimental.key_reuse._core": "key_checked:checked watch_keys:watch_eager_operations",
}

# What nearly all programs do soon after they have arrays: loaded with the first backend.
COMMON = (
    "styrax.numpy.operators", "styrax.numpy.indexing", "styrax.numpy.reductions", "styrax.numpy.moments",
    "styrax.numpy.creation", "styrax.numpy.ranges", "styrax.numpy.selection", "styrax.numpy.methods",
    "styrax.numpy.accumulations", "styrax.nn.activations", "styrax.core.trees.tree_code",
    "styrax.transforms.derivatives")
# the same for methods of arrays and tracers: "method:its name there"
METHODS = {
    "numpy.operators": (
        "__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __floordiv__ __rfloordiv__ "
        "__mod__ __rmod__ __divmod__ __rdivmod__ __pow__ __rpow__ __matmul__ __rmatmul__ __and__ __rand__ __or__ "
        "__ror__ __xor__ __rxor__ __lshift__ __rlshift__ __rshift__ __rrshift__ __eq__ __ne__ __lt__ __le__ __gt__ "
        "__ge__"),
    "numpy.ufuncs": "__neg__:negative_elements __pos__:positive __abs__:absolute __invert__:bitwise_not",
    "numpy.indexing": "__getitem__:getitem",
    "numpy.methods": (
        "__iter__ __setitem__ __delitem__ __copy__:copy __deepcopy__ __array_namespace__ astype byteswap clone:copy "
        "copy diagonal flatten item platform reshape to_device transpose view"),
    "numpy.adapters": "__round__ __contains__ argpartition choose clip compress dot searchsorted",
    "numpy.reductions": "all any argmax argmin max min prod ptp sum",
    "numpy.moments": "mean std var",
    "numpy.accumulations": "cumprod cumsum",
    "numpy.shaping": "ravel squeeze swapaxes trace",
    "numpy.sorting": "argsort sort",
    "numpy.complex_parts": "conj conjugate",
    "numpy.positions": "nonzero",
    "numpy.arrangements": "repeat",
    "numpy.rounding": "round",
    "numpy.selection": "take",
}
PROPERTIES = {
    "numpy.methods": "mT flat itemsize nbytes",
    "numpy.shaping": "T:transpose",
    "numpy.updates": "at",
    "numpy.complex_parts": "real imag",
}

__getattr__, __dir__, __all__ = names(__name__, PROVIDERS)
