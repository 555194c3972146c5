"""Families of primitives: what elementwise operations and their kin have in common.

A row names an operation and the few things that are its own (dtypes it takes, derivative, scalar
code, StableHLO operation, a reference for tests); the constructors here derive abstract evaluation,
batching, both lowerings and the public function from it, and enter the row in `OPERATIONS`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ForwardRef, Literal, Protocol, TypeAlias, Union, overload

import numpy as np

from styrax.core.arrays.array import Array
from styrax.core.programs import rules
from styrax.core.programs.named import named
from styrax.core.programs.primitive import Primitive
from styrax.core.tracing.trace import get_aval
from styrax.core.types import dtypes
from styrax.core.types.avals import AbstractRef, ShapedArray
from styrax.core.types.promotion_lattice import float0_error
from styrax.core.types.typing import ArrayLike
from styrax.transforms import ad, batching

if TYPE_CHECKING:
    from styrax.core.programs.lowering import Builder

    from .functions import AccuracyMode, Tolerance

    class Unary(Protocol):
        """An elementwise function of one array."""

        def __call__(self, x: ArrayLike) -> Array: ...

    class Inexact(Protocol):
        """An elementwise function of one array that accelerators may compute more or less exactly."""

        def __call__(self, x: ArrayLike, *, accuracy: Accuracy = None) -> Array: ...

    class Binary(Protocol):
        """An elementwise function of two arrays."""

        def __call__(self, x: ArrayLike, y: ArrayLike) -> Array: ...
else:
    AccuracyMode = ForwardRef("AccuracyMode", module="styrax.lax")
    Tolerance = ForwardRef("Tolerance", module="styrax.lax")

Accuracy: TypeAlias = Union[Tolerance, AccuracyMode, None]  # noqa: UP007
"""How exact an accelerator's elementary function has to be."""

FLOAT = (np.floating,)
COMPLEX = (np.complexfloating,)
INEXACT = (np.floating, np.complexfloating)
INTEGER = (np.integer,)
BITS = (np.integer, np.bool_)
REAL = (np.integer, np.floating)
NUMERIC = (np.integer, np.floating, np.complexfloating)
ORDERED = (np.integer, np.floating, np.bool_)
ANY = (np.integer, np.floating, np.complexfloating, np.bool_)

_FAMILY_NAMES = {
    np.floating: "floating",
    np.complexfloating: "complex",
    np.integer: "integer",
    np.signedinteger: "signed integer",
    np.bool_: "bool",
}


_PRIMITIVE_NAMES = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor", "bitwise_not": "not",
                    "betainc": "regularized_incomplete_beta"}


class Operation:
    """One row: an operation's name, primitive, public function and what tests compare it with."""

    __slots__ = ("accepts", "arity", "family", "function", "name", "primitive", "reference")

    def __init__(
        self,
        name: str,
        primitive: Primitive,
        function: Callable[..., Any],
        family: str,
        arity: int,
        accepts: Sequence[Sequence[Any]],
        reference: Any,
    ):
        self.name = name
        self.primitive = primitive
        self.function = function
        self.family = family
        self.arity = arity
        self.accepts = accepts
        self.reference = reference


OPERATIONS: dict[str, Operation] = {}


# -- abstract evaluation --------------------------------------------------------------------------


def accepts_dtype(dtype: Any, families: Sequence[Any]) -> bool:
    """Whether `dtype` belongs to one of the dtype families (NumPy abstract types or dtypes)."""
    for family in families:
        if isinstance(family, np.dtype):
            if dtype == family:
                return True
        elif dtypes.issubdtype(dtype, family):
            return True
    return False


def check_dtype(name: str, aval: Any, families: Sequence[Any], position: int | None = None) -> None:
    """Raise TypeError unless the operation `name` takes arrays of the dtype of `aval`."""
    if not accepts_dtype(aval.dtype, families):
        if aval.dtype == dtypes.float0:
            raise float0_error(name)
        wanted = ", ".join(getattr(f, "__name__", None) or str(f) for f in families)  # NumPy's names
        where = "" if position is None else f" at position {position}"
        raise TypeError(
            f"{_PRIMITIVE_NAMES.get(name, name)} does not accept dtype {aval.dtype.name}{where}. "
            f"Accepted dtypes{where} are subtypes of {wanted}."
        )


def check_bits(dtype: Any) -> None:
    """Raise TypeError unless bitwise reductions take arrays of the dtype."""
    if dtype != np.bool_ and (dtype.kind not in "iu" or dtype.name.endswith(("int2", "int4"))):
        raise TypeError(f"logical reduction requires operand dtype bool or int, got {dtype.name}.")


def check_same_dtypes(name: str, avals: Sequence[Any], numpy_name: str | None = None) -> None:
    """Raise TypeError unless all avals have one dtype."""
    first = avals[0].dtype
    for aval in avals[1:]:
        if aval.dtype != first:
            listed = ", ".join(a.dtype.name for a in avals)
            tip = (f" (Tip: jnp.{numpy_name} is a similar function that does automatic type promotion on inputs)."
                   if numpy_name else "")
            raise TypeError(f"lax.{name} requires arguments to have the same dtypes, got {listed}.{tip}")


def broadcast_shape(name: str, shapes: Sequence[tuple]) -> tuple:
    """The shape of an elementwise result: scalars fit everywhere, otherwise ranks must be equal and
    dimensions equal or one. Raises TypeError for other shapes."""
    ranked = [s for s in shapes if s]
    if not ranked:
        return ()
    first = ranked[0]
    if all(s == first for s in ranked[1:]):
        return first
    if any(len(s) != len(first) for s in ranked):
        raise TypeError(f"{name}: arrays must have the same number of dimensions, got {set(map(len, ranked))}")
    out = []
    for sizes in zip(*ranked, strict=True):
        size: Any = 1
        for s in sizes:
            if not (type(s) is int and s == 1):
                if (type(size) is int and size == 1) or size == s:
                    size = s
                else:
                    listed = ", ".join(map(str, shapes))
                    raise TypeError(f"{name} got incompatible shapes for broadcasting: {listed}.")
        out.append(size)
    return tuple(out)


def joined_vma(avals: Sequence[Any]) -> frozenset:
    """The mesh axes over which a result of these operands varies."""
    vma: frozenset = frozenset()
    for aval in avals:
        other = getattr(aval, "vma", None)
        if other:
            vma |= other
    return vma


def all_weak(avals: Sequence[Any]) -> bool:
    return all(a.weak_type for a in avals)


def standard_abstract_eval(
    name: str,
    shape_rule: Callable[..., tuple],
    dtype_rule: Callable[..., Any],
    weak_type_rule: Callable[..., bool] | None = None,
) -> Callable[..., ShapedArray]:
    """An abstract evaluation put together from rules of shape, dtype and weak type, of operands that are no references.
    """

    def abstract_eval(*avals: Any, **params: Any) -> ShapedArray:
        if AbstractRef in map(type, avals):
            ref = next(a for a in avals if type(a) is AbstractRef)
            raise ValueError(f"Attempting to pass a Ref {ref.str_short()} to a primitive: {name} -- did you forget to "
                             "unpack ([...]) the ref?")
        dtype = dtype_rule(*avals, **params)
        shape = shape_rule(*avals, **params)
        weak = all_weak(avals) if weak_type_rule is None else weak_type_rule(*avals, **params)
        vma = joined_vma(avals)
        return ShapedArray(shape, dtype, weak, vma=vma) if vma else ShapedArray(shape, dtype, weak)

    return abstract_eval


def standard_primitive(
    name: str,
    shape_rule: Callable[..., tuple],
    dtype_rule: Callable[..., Any],
    weak_type_rule: Callable[..., bool] | None = None,
    *,
    loops: Callable[..., Any] | None = None,
    scalar: Callable[..., Any] | None = None,
    hlo: Any = None,
) -> Primitive:
    """A primitive with one result.

    `shape_rule`, `dtype_rule` and `weak_type_rule` take the operands' avals and the parameters; the
    result is weakly typed where all operands are unless a rule says otherwise. `loops` is the lowering for the CPU,
    or, of an elementwise operation, `scalar` the code of one element.
    """
    prim = Primitive(name)
    prim.def_abstract_eval(standard_abstract_eval(name, shape_rule, dtype_rule, weak_type_rule))
    if loops is not None:
        rules.loops[prim] = loops
    if scalar is not None:
        lower_elementwise(prim, scalar)
    if hlo is not None:
        rules.stablehlos[prim] = hlo
    return prim


def first_dtype(operand: Any, *_: Any, **__: Any) -> Any:
    """The dtype rule of operations that keep the dtype of their first operand."""
    return operand.dtype


def first_weak_type(operand: Any, *_: Any, **__: Any) -> bool:
    return operand.weak_type


# -- lowerings of elementwise operations ----------------------------------------------------------


def reader(b: Builder, x: Any, shape: Sequence[Any]) -> Callable[[Sequence[Any]], Any]:
    """How an operand of an elementwise operation is read at an index of the result."""
    if not x.shape:
        return lambda index: x.at(())
    if tuple(x.shape) == tuple(shape):
        return x.at
    stretched = [
        type(d) is int and d == 1 and not (type(s) is int and s == 1)
        for d, s in zip(x.shape, shape, strict=True)
    ]
    zero = b.index(0)
    return lambda index: x.at([zero if s else i for s, i in zip(stretched, index, strict=True)])


def lower_elementwise(prim: Primitive, scalar: Callable[..., Any]) -> None:
    """Gives an operation its CPU lowering by the code of one element."""

    def rule(b: Builder, *xs: Any, **params: Any) -> Any:
        out = b.avals_out[0]
        readers = [reader(b, x, out.shape) for x in xs]
        own = _own_params(scalar, params)
        return b.value(
            out.shape, out.dtype, lambda index: scalar(b, *[read(index) for read in readers], **own)
        )

    rules.loops[prim] = rule
    prim.declare(elementwise=True)


def elementwise_hlo(op: str | Callable[..., Any]) -> Callable[..., Any]:
    """The StableHLO lowering: operands are spread to the shape of the result first."""

    def rule(m: Any, *xs: Any, **params: Any) -> Any:
        out = m.avals_out[0]
        xs = tuple(m.broadcast_to(x, out) for x in xs)
        return m.op1(op, xs, out) if isinstance(op, str) else op(m, *xs, **_own_params(op, params))

    return rule


def _own_params(rule: Callable[..., Any], params: dict[str, Any]) -> dict[str, Any]:
    """The parameters that the rule of one element takes. Interpreters that turn one operation into another bind it with
    the first one's parameters, which mean nothing to it."""
    if not params:
        return params
    names = _keywords(rule)
    return params if names is None else {name: value for name, value in params.items() if name in names}


@functools.cache
def _keywords(rule: Callable[..., Any]) -> frozenset[str] | None:
    """The names of a function's parameters; None where it takes all."""
    code = rule.__code__  # (`inspect.signature` takes ten times as long)
    named = code.co_argcount + code.co_kwonlyargcount
    return None if code.co_flags & inspect.CO_VARKEYWORDS else frozenset(code.co_varnames[:named])


def _without_accuracy(scalar: Callable[..., Any]) -> Callable[..., Any]:
    def ignoring(b: Builder, *xs: Any, accuracy: Any = None) -> Any:
        return scalar(b, *xs)

    return ignoring


def accuracy_attribute(accuracy: Any) -> str:
    """The StableHLO attribute for an `accuracy` parameter, empty for None."""
    if accuracy is None:
        return ""
    if hasattr(accuracy, "ulps"):
        inside = f"atol = {float(accuracy.atol)!r}, rtol = {float(accuracy.rtol)!r}, ulps = {int(accuracy.ulps)}, "
        mode = "TOLERANCE"
    else:
        inside, mode = "", str(getattr(accuracy, "name", accuracy))
        inside = "ulps = 0, "
    return f"result_accuracy = #stablehlo.result_accuracy<{inside}mode = #stablehlo.result_accuracy_mode<{mode}>>"


def of_operands(prim: Primitive, names: Sequence[str]) -> Callable[..., Array]:
    """The function of a primitive's operands, which go by these names."""
    function: Callable[..., Array]
    if tuple(names) == ("x",):

        def function(x: ArrayLike) -> Array:
            return prim.bind(x)

    elif tuple(names) == ("x", "y"):

        def function(x: ArrayLike, y: ArrayLike) -> Array:
            return prim.bind(x, y)

    else:
        signature = inspect.Signature(
            [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation="ArrayLike") for n in names],
            return_annotation="Array")
        count = len(names)

        def function(*args: ArrayLike, **kwargs: ArrayLike) -> Array:
            if kwargs or len(args) != count:
                args = signature.bind(*args, **kwargs).args
            return prim.bind(*args)

        function.__signature__ = signature  # type: ignore[attr-defined]
        function.__annotations__ = dict.fromkeys(names, "ArrayLike") | {"return": "Array"}
    return function


def _describe(families: Sequence[Any]) -> str:
    names = [_FAMILY_NAMES.get(f) or str(f) for f in families]
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " or " + names[-1]


# -- families -------------------------------------------------------------------------------------


@overload
def unary(name: str, accepts: Sequence[Any], doc: str, *, accuracy: Literal[True], **row: Any
          ) -> tuple[Inexact, Primitive]: ...


@overload
def unary(name: str, accepts: Sequence[Any], doc: str, **row: Any) -> tuple[Unary, Primitive]: ...


def unary(  # type: ignore[misc]  # `row` stands for the other parameters
    name: str,
    accepts: Sequence[Any],
    doc: str,
    *,
    scalar: Callable[..., Any],
    hlo: str | Callable[..., Any],
    jvp: Callable[..., Any] | str | None = None,
    out_dtype: Callable[[Any], Any] | None = None,
    accuracy: bool = False,
    prim_name: str | None = None,
    reference: Any = None,
) -> tuple[Callable[..., Array], Primitive]:
    """An elementwise function of one array; returns `(public function, primitive)`.

    `jvp(t, ans, x)` gives the tangent of the result, "zero" says that it always vanishes, None that
    there is none. `scalar(b, x)` builds one element for the CPU; `hlo` is the name of a StableHLO
    operation or `rule(m, x)`. `accuracy` adds JAX's parameter of that name.
    """

    def dtype_rule(x: Any, **_: Any) -> Any:
        check_dtype(name, x, accepts)
        return x.dtype if out_dtype is None else out_dtype(x.dtype)

    prim = standard_primitive(prim_name or name, lambda x, **_: x.shape, dtype_rule)
    takes = _describe(accepts)
    summary = f"{doc}\n\nArgs:\n  x: array of {takes} dtype.\n"
    returns = "\nReturns:\n  an array of the same shape."
    error = f"\n\nRaises:\n  TypeError: for an array that is not of {takes} dtype."
    function: Callable[..., Array]
    if accuracy:

        def function(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
            return prim.bind(x, accuracy=accuracy)

        summary += "  accuracy: how exact an accelerator has to be; the CPU ignores it.\n"
        scalar = _without_accuracy(scalar)
        prim.declare(unprinted=frozenset(("accuracy",)))
        if isinstance(hlo, str):
            op = hlo

            def hlo(m: Any, x: Any, accuracy: Any = None) -> Any:
                attribute = accuracy_attribute(accuracy) if op.startswith("stablehlo.") else ""
                return m.op1(op, [x], m.avals_out[0], attribute)

        else:
            hlo = _without_accuracy(hlo)
    else:

        def function(x: ArrayLike) -> Array:
            return prim.bind(x)

    named(function, name, summary + returns + error, "styrax.lax")
    lower_elementwise(prim, scalar)
    rules.stablehlos[prim] = elementwise_hlo(hlo)
    batching.defvectorized(prim)
    if jvp == "zero":
        ad.defjvp_zero(prim)
    elif jvp is not None:
        rule: Any = jvp
        ad.defjvp2(prim, lambda t, ans, x, **_: rule(t, ans, x))
    OPERATIONS[name] = Operation(name, prim, function, "unary", 1, (accepts,), reference)
    return function, prim


def nary(
    name: str,
    accepts: Sequence[Sequence[Any]],
    doc: str,
    *,
    scalar: Callable[..., Any],
    hlo: str | Callable[..., Any],
    jvp: Sequence[Callable[..., Any] | None] | str | None = None,
    out_dtype: Callable[[Any], Any] | None = None,
    same_dtypes: bool = True,
    numpy_name: str | None = None,
    prim_name: str | None = None,
    reference: Any = None,
    arguments: Sequence[str] = ("x", "y"),
) -> tuple[Callable[..., Array], Primitive]:
    """An elementwise function of several arrays of one dtype; returns `(public function, primitive)`.

    Operands may be scalars, or have equal ranks with dimensions that are equal or one. `jvp` holds a
    rule `(t, ans, *operands)` for each operand, or is "zero" or None as for `unary`.
    """
    prim_name = prim_name or name

    def dtype_rule(*avals: Any, **_: Any) -> Any:
        for position, (aval, families) in enumerate(zip(avals, accepts, strict=True)):
            check_dtype(name, aval, families, position)
        if same_dtypes:
            check_same_dtypes(name, avals, numpy_name or name)
        return avals[0].dtype if out_dtype is None else out_dtype(avals[0].dtype)

    def shape_rule(*avals: Any, **_: Any) -> tuple:
        return broadcast_shape(name, [a.shape for a in avals])

    prim = standard_primitive(prim_name, shape_rule, dtype_rule)
    function = of_operands(prim, arguments)
    takes = _describe(accepts[0])
    named(
        function,
        name,
        f"{doc}\n\nArgs:\n  {', '.join(arguments)}: arrays of one {takes} dtype. Each is a scalar, or all have "
        "the same number of\n    dimensions, equal or one.\n\nReturns:\n  an array of the shape of the operands "
        "broadcast together.\n\nRaises:\n  TypeError: for other dtypes, dtypes that differ, or shapes that do "
        "not fit.",
        "styrax.lax",
    )
    lower_elementwise(prim, scalar)
    rules.stablehlos[prim] = elementwise_hlo(hlo)
    batching.defbroadcasting(prim)
    if jvp == "zero":
        ad.defjvp_zero(prim)
    elif jvp is not None:
        ad.defjvp2(prim, *jvp)
    OPERATIONS[name] = Operation(name, prim, function, "nary", len(accepts), accepts, reference)
    return function, prim


def binary(name: str, accepts: Sequence[Any], doc: str, **row: Any) -> tuple[Binary, Primitive]:
    """`nary` for two operands that take the same dtypes."""
    return nary(name, (accepts, accepts), doc, **row)


def comparison(
    name: str,
    accepts: Sequence[Any],
    doc: str,
    *,
    direction: str,
    scalar: Callable[..., Any],
    total_order: bool = False,
    numpy_name: str | None = None,
    reference: Any = None,
) -> tuple[Binary, Primitive]:
    """An elementwise comparison: two arrays of one dtype give booleans, and tangents vanish."""

    def hlo(m: Any, x: Any, y: Any) -> Any:
        kind = "TOTALORDER" if total_order and accepts_dtype(x.dtype, FLOAT) else None
        return m.compare(direction, x, y, kind)

    return nary(
        name,
        (accepts, accepts),
        doc,
        scalar=scalar,
        hlo=hlo,
        jvp="zero",
        out_dtype=lambda dtype: np.dtype(np.bool_),
        numpy_name=numpy_name,
        reference=reference,
    )


# -- values for rules -----------------------------------------------------------------------------


def dtype_of(x: Any) -> Any:
    """The dtype of an array, tracer or scalar."""
    return get_aval(x).dtype


def shape_of(x: Any) -> tuple:
    return get_aval(x).shape


_PYTHON_SCALARS = {"b": bool, "i": int, "f": float, "c": complex}


def scalar_like(x: Any, value: Any) -> Any:
    """The number `value` as a scalar of the dtype of `x`, weakly typed where `x` is."""
    aval = get_aval(x)
    if aval.weak_type and aval.dtype.kind in _PYTHON_SCALARS:
        return _PYTHON_SCALARS[aval.dtype.kind](value)
    return np.asarray(value, aval.dtype)


def real_dtype(dtype: Any) -> Any:
    """The dtype of the parts of a complex dtype; other dtypes are their own."""
    return np.dtype({8: np.float32, 16: np.float64}[dtype.itemsize]) if dtype.kind == "c" else dtype


def complex_dtype(dtype: Any) -> Any:
    """The complex dtype whose parts are of the given dtype."""
    if dtype.kind == "c":
        return dtype
    return np.dtype(np.complex128 if dtype == np.float64 else np.complex64)


def is_complex(x: Any) -> bool:
    return get_aval(x).dtype.kind == "c"
