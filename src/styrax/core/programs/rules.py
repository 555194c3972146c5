"""The open rule tables: what every transformation and lowering knows of every primitive.

Each table maps a `Primitive` to a rule and may be filled at any time, also by libraries that
define primitives of their own. Signatures are those of JAX's public tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .lowering import Builder, Value

Table = dict[Any, Callable[..., Any]]

jvps: Table = {}  # (primals, tangents, **params) -> (out, tangent_out)
linearizations: Table = {}  # (nonzero_in, *primals, **params) -> (outs, nonzero_out, residuals, fun)
transposes: Table = {}  # (cotangent, *args, **params) -> cotangents of the linear args
batchers: Table = {}  # (args, dims, **params) -> (out, out_dim)
fancy_batchers: Table = {}  # (axis_data, args, dims, **params) -> (out, out_dim)
partial_evals: Table = {}  # (trace, *tracers, **params) -> outs
partial_eval_jaxpr_customs: Table = {}
dces: Table = {}  # (used_outputs, eqn) -> (used_inputs, new_eqn | None)
jets: Table = {}  # (primals, series, **params) -> (out, derivatives of out): Taylor mode
discharges: Table = {}  # (in_avals, out_avals, *args, **params) -> (new_invals, outs)
loops: Table = {}  # (builder, *values, **params) -> value(s): the CPU lowering
expansions: Table = {}  # (*args, **params) -> outs | NotImplemented: what it does on values that are not arrays alone
flattenings: Table = {}  # (in_avals, **params) -> params: the equation on the arrays that its operands consist of
stagings: Table = {}  # (trace, tracers, params) -> outs | NotImplemented (one equation): into a program being written
texts: Table = {}  # (eqn, names, settings) -> Doc: an equation's text, see `text`
stablehlos: Table = {}  # (module, *operands, **params) -> operand(s): the XLA lowering

not_mapped = None


def same_value(b: Builder, x: Value, **_: Any) -> Value:
    """The loops of a primitive that computes nothing: its operand is its result."""
    return x


tables: dict[str, Table] = {
    "jvp": jvps,
    "linearize": linearizations,
    "transpose": transposes,
    "batching": batchers,
    "fancy batching": fancy_batchers,
    "partial evaluation": partial_evals,
    "dce": dces,
    "jet": jets,
    "discharge": discharges,
    "loops": loops,
    "staging": stagings,
    "stablehlo": stablehlos,
}
