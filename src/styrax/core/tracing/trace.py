"""Traces and tracers: who interprets a primitive.

There is one current trace per thread. A transformation makes a trace of its own, which knows its
parent, wraps its inputs in tracers that hold their trace, makes it current and runs the function.
Arguments that are not its tracers are constants to it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from types import MethodType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from .. import hooks
from ..types import avals as avals_module
from ..types import dtypes
from ..types.avals import AbstractRef, as_bound, aval_method, aval_property, aval_rules
from ..types.dims import Dim, NotGeneric
from ..types.typing import Object, PyTree
from . import errors

if TYPE_CHECKING:
    from ..programs.primitive import Primitive
    from ..types.avals import AbstractValue


class Trace:
    """An interpretation of primitives."""

    is_eval = False
    _invalidated = False
    requires_low = True

    def __getattr__(self, name: str) -> Any:
        return hooks.trace_attribute(self, name)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not cls.__module__.startswith("styrax."):  # libraries apply transformations of their own to functions
            hooks.adapt_trace(cls)

    def process_primitive(self, primitive: Primitive, args: tuple, params: dict[str, Any]) -> Any:
        raise TypeError(f"{type(self).__name__} does not interpret primitives")

    def process_custom_jvp_call(self, primitive: Primitive, fun: Callable, jvp: Callable, args: tuple,
                                *, symbolic_zeros: bool) -> Any:
        """Runs `fun(*args)` (flat lists) under a custom JVP rule `jvp(*primals, *tangents)`."""
        raise TypeError(f"{type(self).__name__} does not interpret custom_jvp calls")

    def process_custom_vjp_call(self, primitive: Primitive, fun: Callable, fwd: Callable, bwd: Callable,
                                args: tuple, *, out_trees: Any, symbolic_zeros: bool) -> Any:
        """Runs `fun(*args)` under a custom VJP given by `fwd` and `bwd`."""
        raise TypeError(f"{type(self).__name__} does not interpret custom_vjp calls")

    def invalidate(self) -> None:
        """Marks the end of the trace: its tracers are leaks from now on."""
        self._invalidated = True

    def is_valid(self) -> bool:
        return not self._invalidated


class Tracer:
    """A value under a trace. NumPy's methods and operators are installed by `styrax.numpy`."""

    __slots__ = ("_aval", "_trace", "__weakref__")
    __array_priority__ = 1000
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, trace: Trace, aval: AbstractValue | None = None):
        self._trace = trace
        self._aval: Any = aval  # None where the class has an `aval` of its own

    @property
    def aval(self) -> Any:
        return self._aval

    @property
    def shape(self) -> tuple:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return len(self.aval.shape)

    @property
    def size(self) -> Any:
        return self.aval.size

    @property
    def weak_type(self) -> bool:
        return self.aval.weak_type

    @property
    def mat(self) -> Any:
        """What is known along axes of a `shard_map`."""
        return self.aval.mat

    def to_concrete_value(self) -> Any:
        """The concrete array behind this tracer, or None where it is abstract."""
        return None

    def full_lower(self) -> Any:
        return self

    def is_ref(self) -> bool:
        return isinstance(self.aval, avals_module.AbstractRef)

    def origin(self) -> str:
        """Where this tracer came from, for error messages."""
        return ""

    def birth(self) -> str:
        """Where this tracer was made, for messages about leaked ones."""
        return ""

    def _concrete(self, error: Callable[[], Exception]) -> Any:
        value = self.to_concrete_value()
        if value is None:
            raise error()
        return value

    def __bool__(self) -> bool:
        if self.aval.size != 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
                if self.aval.size
                else "The truth value of an empty array is ambiguous."
            )
        return bool(self._concrete(lambda: errors.TracerBoolConversionError(self)))

    def _check_scalar(self) -> None:
        if self.aval.shape:
            raise TypeError(f"Only scalar arrays can be converted to Python scalars; got arr.ndim={self.ndim}")

    def __int__(self) -> int:
        self._check_scalar()
        return int(self._concrete(lambda: errors.ConcretizationTypeError(self, _conversion("int"))))

    # What would carry a value of floats out of a derivative is refused even where it is known: it would lose its
    # tangent.
    def __float__(self) -> float:
        self._check_scalar()
        raise errors.ConcretizationTypeError(self, _conversion("float"))

    def __complex__(self) -> complex:
        self._check_scalar()
        raise errors.ConcretizationTypeError(self, _conversion("complex"))

    def __index__(self) -> int:
        if self.aval.shape or not dtypes.issubdtype(self.aval.dtype, np.integer):
            raise TypeError("Only integer scalar arrays can be converted to a scalar index.")
        return self._concrete(lambda: errors.TracerIntegerConversionError(self)).__index__()

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise errors.TracerArrayConversionError(self)

    def __reduce__(self) -> Any:
        raise errors.ConcretizationTypeError(
            self, "The error occurred in the __reduce__ method, which may indicate an attempt to serialize/pickle a "
                  "traced value.")

    def item(self, *args: Any) -> Any:
        value = self._concrete(lambda: errors.ConcretizationTypeError(
            self, "This occurred in the item() method of jax.Array"))
        return np.asarray(value).item(*args)

    def __len__(self) -> int:
        return len(self.aval)

    def __repr__(self) -> str:
        shown = "" if self.aval is None else self.aval.str_short(short_dtypes=True)
        return f"{type(self).__name__}<{shown}>"

    def shown_as(self, aval: Any) -> str | None:
        """What is shown of a value of type `aval`, all devices' of which are in this one; None where nothing is."""
        return None

    @property
    def block_until_ready(self) -> NoReturn:
        raise AttributeError(f"The 'block_until_ready' method is not available on traced array with shape "
                             f"{self.aval.str_short(short_dtypes=False)}.")

    @property
    def sharding(self) -> Any:
        raise AttributeError(f"The 'sharding' attribute is not available on traced array with shape "
                             f"{self.aval.str_short(short_dtypes=False)}. To query sharding information on tracers, "
                             "use `jax.typeof(x)`.")

    def copy_to_host_async(self) -> NoReturn:
        raise AttributeError(f"The 'copy_to_host_async' method is not available on traced array with shape "
                             f"{self.aval.str_short(short_dtypes=False)}.")


class AttributeOfType:
    """An attribute of the traced values whose type has a function for it; others have what stood here before, or none.

    (With `__getattr__` in its place, all attributes of tracers would be slower.)
    """

    __slots__ = ("name", "otherwise")

    def __init__(self, name: str, otherwise: Any):
        self.name = name
        self.otherwise = otherwise

    def __get__(self, instance: Tracer | None, owner: type) -> Any:
        if instance is None:
            return self
        aval = instance.aval
        if type(aval) is AbstractRef and self.name in aval.methods:
            return MethodType(aval.methods[self.name], instance)
        found = getattr(type(aval), self.name, None)
        if type(found) is aval_method:
            return MethodType(found.fun, instance)
        if type(found) is aval_property:
            return found.fget(instance)
        if self.otherwise is not None:
            return self.otherwise.__get__(instance, owner)
        raise AttributeError(f"{type(instance).__name__!r} object has no attribute {self.name!r}")


def add_attributes_of_types(names: Iterable[str]) -> None:
    """Has traced values look these attributes up in their types."""
    for name in names:
        getattr(Tracer, name, None)  # what is found on demand takes its place
        before = Tracer.__dict__.get(name)
        if type(before) is not AttributeOfType:
            setattr(Tracer, name, AttributeOfType(name, before))


def _of_memory(name: str) -> Callable[..., NoReturn]:
    """A method of arrays that a tracer, which has no memory, refuses."""

    def refuse(self: Tracer, *args: Any, **kwargs: Any) -> NoReturn:
        raise errors.ConcretizationTypeError(self, f"The {name}() method was called on traced array with shape "
                                                   f"{self.aval.str_short(short_dtypes=False)}.")

    refuse.__name__ = name
    return refuse


for _name in ("addressable_data", "delete", "devices", "is_deleted", "on_device_size_in_bytes", "tobytes", "tolist",
              "unsafe_buffer_pointer", "__dlpack__"):
    setattr(Tracer, _name, _of_memory(_name))


def _of_place(name: str, refused: str) -> property:
    """An attribute that tells where an array is, which a tracer refuses."""

    def refuse(self: Tracer) -> NoReturn:
        raise errors.ConcretizationTypeError(self, f"The {refused} traced array with shape "
                                                   f"{self.aval.str_short(short_dtypes=False)}.")

    return property(refuse)


for _name in ("addressable_shards", "committed"):
    setattr(Tracer, _name, _of_place(_name, f"{_name!r} attribute is not available on"))
for _name in ("global_shards", "is_fully_addressable", "is_fully_replicated", "traceback"):
    setattr(Tracer, _name, _of_place(_name, f"{_name} property was called on"))


def _conversion(kind: str) -> str:
    return (f"The problem arose with the `{kind}` function. If trying to convert the data type of a value, "
            f"try using `x.astype({kind})` or `jnp.array(x, {kind})` instead.")


class EvalTrace(Trace):
    """No transformation: primitives run at once."""

    is_eval = True

    def process_primitive(self, primitive: Primitive, args: tuple, params: dict[str, Any]) -> Any:
        for x in args:
            if isinstance(x, Tracer):
                raise_leak(x)
        return primitive.evaluate(args, params)

    def process_custom_jvp_call(self, primitive: Primitive, fun: Callable, jvp: Callable, args: tuple,
                                *, symbolic_zeros: bool) -> Any:
        return fun(*map(as_bound, args))

    def process_custom_vjp_call(self, primitive: Primitive, fun: Callable, fwd: Callable, bwd: Callable,
                                args: tuple, *, out_trees: Any, symbolic_zeros: bool) -> Any:
        return fun(*map(as_bound, args))

    def __repr__(self) -> str:
        return "EvalTrace"


eval_trace = EvalTrace()


class FoldingTrace(Trace):
    """Runs at once what works on concrete values alone, and gives the rest to the trace outside."""

    __slots__ = ("parent",)

    def __init__(self, parent: Trace):
        self.parent = parent

    def _choose(self, args: tuple) -> Trace:
        return self.parent if any(isinstance(x, Tracer) for x in args) else eval_trace

    def process_primitive(self, primitive: Primitive, args: tuple, params: dict[str, Any]) -> Any:
        trace = self._choose(args)
        with set_current_trace(trace):
            return trace.process_primitive(primitive, args, params)

    def process_custom_jvp_call(self, primitive: Primitive, fun: Callable, jvp: Callable, args: tuple,
                                *, symbolic_zeros: bool) -> Any:
        trace = self._choose(args)
        with set_current_trace(trace):
            return trace.process_custom_jvp_call(primitive, fun, jvp, args, symbolic_zeros=symbolic_zeros)

    def process_custom_vjp_call(self, primitive: Primitive, fun: Callable, fwd: Callable, bwd: Callable,
                                args: tuple, *, out_trees: Any, symbolic_zeros: bool) -> Any:
        trace = self._choose(args)
        with set_current_trace(trace):
            return trace.process_custom_vjp_call(
                primitive, fun, fwd, bwd, args, out_trees=out_trees, symbolic_zeros=symbolic_zeros)

    def __repr__(self) -> str:
        return f"FoldingTrace({self.parent!r})"


class _State(threading.local):
    """What a thread is tracing: the current trace, and the sizes of the mapped axes in scope."""

    def __init__(self) -> None:
        self.trace: Trace = eval_trace
        self.axis_sizes: dict[Hashable, Any] = {}


state = _State()


def current_trace() -> Trace:
    return state.trace


class set_current_trace:
    """Context manager: makes `trace` the current one."""

    __slots__ = ("trace", "previous")

    def __init__(self, trace: Trace):
        self.trace = trace

    def __enter__(self) -> Trace:
        self.previous = state.trace
        state.trace = self.trace
        return self.trace

    def __exit__(self, *_: Any) -> None:
        state.trace = self.previous


@contextmanager
def take_current_trace() -> Iterator[Trace]:
    """Gives the current trace away: inside, primitives run at once."""
    previous = state.trace
    state.trace = eval_trace
    try:
        yield previous
    finally:
        state.trace = previous


@contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Inside, operations on concrete values run at once also while something is traced."""
    trace = state.trace
    with set_current_trace(trace if trace.is_eval or type(trace) is FoldingTrace else FoldingTrace(trace)):
        yield


@contextmanager
def extend_axis_env(name: Hashable, size: Any) -> Iterator[None]:
    """Brings a mapped axis into scope."""
    previous = state.axis_sizes
    state.axis_sizes = {**previous, name: size}
    try:
        yield
    finally:
        state.axis_sizes = previous


def axis_size(name: Hashable) -> Any:
    """The size of a mapped axis in scope. Raises NameError for one that is not."""
    try:
        return state.axis_sizes[name]
    except KeyError:
        raise NameError(f"unbound axis name: {name}. The following axis names are available: "
                        f"{list(state.axis_sizes)}") from None


def axis_env() -> tuple[tuple[Hashable, Any], ...]:
    """The mapped axes in scope as a hashable value."""
    return tuple(state.axis_sizes.items())


def raise_leak(tracer: Tracer) -> None:
    """Raises UnexpectedTracerError for a tracer whose trace is not running, with its place of birth and of use."""
    from . import source

    line = source.current_line()
    raise errors.UnexpectedTracerError(
        "Encountered an unexpected tracer. A function transformed by JAX had a side effect, allowing for a reference "
        f"to an intermediate value with type {tracer.aval.str_short(short_dtypes=False)} wrapped in a "
        f"{type(tracer).__name__} to escape the scope of the transformation.\n"
        "JAX transformations require that functions explicitly return their outputs, and disallow saving intermediate "
        f"values to global state.{tracer.birth()}"
        + (f"\nIt was used at {line}" if line else "")
        + "\nTo catch the leak earlier, try setting the environment variable JAX_CHECK_TRACER_LEAKS or using the "
        "`jax.checking_leaks` context manager.")


def get_aval(x: Object) -> Any:
    """The abstract value of an array, tracer, scalar or reference.

    Raises TypeError for anything that is not a JAX type.

    Example:
      >>> import styrax as jax
      >>> import styrax.numpy as jnp
      >>> jax.typeof(jnp.ones((2, 3)))
      ShapedArray(float32[2,3])
    """
    rule = aval_rules.get(type(x))
    if rule is not None:
        return rule(x)
    if isinstance(x, Tracer):
        return x.aval
    if type(x).__name__ == "MaskedArray":  # by name: NumPy's module of them is not imported for the question
        raise ValueError("numpy masked arrays are not supported as direct inputs to JAX functions. Use arr.filled() to "
                         "convert the value to a standard numpy array.")
    for base in type(x).__mro__:
        rule = aval_rules.get(base)
        if rule is not None:
            return rule(x)
    if hasattr(x, "__jax_array__"):
        return get_aval(x.__jax_array__())
    if type(x) is Dim:
        raise NotGeneric("a size as an element")
    raise TypeError(f"Argument '{x}' of type {type(x)} is not a valid JAX type")


typeof = get_aval


def valid_jaxtype(x: PyTree) -> bool:
    """Whether a value is an array, a scalar, or anything else that has an abstract value."""
    try:
        get_aval(x)
    except TypeError:
        return False
    return True


def full_lower(x: Any) -> Any:
    """A value without tracers around it that add nothing."""
    return x.full_lower() if isinstance(x, Tracer) else x


def is_concrete(x: Any) -> bool:
    return to_concrete_value(x) is not None


def to_concrete_value(x: Any) -> Any:
    return x.to_concrete_value() if isinstance(x, Tracer) else x


def concrete_or_error(force: Callable[[Any], Any] | None, val: PyTree, context: str = "") -> PyTree:
    """`force(val)` for a concrete value.

    Raises ConcretizationTypeError, with `context` telling what needed the value, for an abstract one.
    """
    if isinstance(val, Tracer):
        value = val.to_concrete_value()
        if value is None:
            raise errors.ConcretizationTypeError(val, context)
        val = value
    return val if force is None else force(val)
