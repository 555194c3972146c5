"""Printing a jaxpr as the text of a StableHLO module.

Every equation is written by the rule of its primitive in `core.programs.rules.stablehlos`; a rule gets the
builder of the block it stands in and operands as `Hlo` values, and returns `Hlo` values. Calls
without a rule (nested `jit`, custom derivatives, `remat`; by their trait `program`) become
calls of private functions, one function per jaxpr. Operations are printed in MLIR's generic form,
the only one that needs no knowledge of each operation's own syntax (`assembly` has that, for readers).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from styrax.core import hooks
from styrax.core.arrays.devices import Sharding
from styrax.core.programs import rules
from styrax.core.programs.attributes import i64_array
from styrax.core.programs.jaxpr import ClosedJaxpr, Jaxpr, Literal
from styrax.core.types.avals import AbstractToken, ShapedArray
from styrax.core.types.dims import is_named
from styrax.core.types.effects import ordered_effects
from styrax.core.types.physical import lower as on_plain_arrays
from styrax.core.types.physical import physical_aval

from . import depth, dynamic_shapes, locations, shardy
from .literal_text import ELEMENT_TYPES, attribute_text, dense_text, element_type, layout_text, with_frontend_attributes

Told = tuple[Sequence[str], Sequence[Sharding | None]]  # of each argument, or each result: attributes; how it is spread
_TOKEN_TYPE = "!stablehlo.token"


class LoweringError(NotImplementedError):
    """A primitive has neither a StableHLO rule nor a jaxpr to be expanded into."""


def type_text(aval: Any) -> str:
    """The MLIR type of a value of this aval."""
    if isinstance(aval, AbstractToken):
        return _TOKEN_TYPE
    aval = physical_aval(aval)
    dims = "".join(f"{'?' if is_named(d) else d}x" for d in aval.shape)
    return f"tensor<{dims}{element_type(aval.dtype)}>"


class Hlo:
    """A value of the printed program: its name (`%5`) and the aval it was made for."""

    __slots__ = ("aval", "name")

    def __init__(self, name: str, aval: Any):
        self.name = name
        self.aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        return self.aval.dtype

    def __repr__(self) -> str:
        return f"{self.name}: {type_text(self.aval)}"


def is_ordered(closed: ClosedJaxpr) -> bool:
    """Whether a program has effects that happen in the order in which they stand."""
    return any(map(ordered_effects.contains, closed.effects))


class _Names:
    """The counter of SSA names of one function; blocks of its regions share it."""

    __slots__ = ("count", "sizes")

    def __init__(self) -> None:
        self.count = 0
        self.sizes: dict[str, Hlo] = {}  # the values of the variables that sizes depend on

    def fresh(self) -> str:
        name = f"%{self.count}"
        self.count += 1
        return name


def _without_sharding(aval: Any) -> Any:
    return aval if getattr(aval, "given_sharding", None) is None else aval.update(sharding=None)


class Functions(Protocol):
    """Python functions by their numbers: a list, or what counts like one."""

    def append(self, function: Callable[..., Sequence[Any]], /) -> None: ...

    def __len__(self) -> int: ...


class Module:
    """The functions printed so far, and which jaxpr each private one stands for; the Python functions that the program
    calls, by their numbers; the sizes of the named axes of the mesh that it runs on, devices in row-major order; and
    the libraries whose routines the client knows by name."""

    __slots__ = ("_by_jaxpr", "_keep_alive", "_names", "axes", "callbacks", "channels", "functions", "libraries",
                 "located", "meshes", "name", "parse", "programs", "scope", "variables")

    def __init__(self, name: str, axes: Mapping[Hashable, int] | None = None, located: bool = False,
                 libraries: Collection[str] = ("lapack",), sharded: bool = False):
        self.libraries = frozenset(libraries)
        self.name = "".join(c if c.isalnum() or c == "_" else "_" for c in name).rstrip("_")
        self.scope = f"jit({name.removeprefix('jit_')})"  # that all its operations stand in
        self.located = located  # whether operations tell where they come from
        self.meshes = shardy.Meshes() if sharded else None  # over which values are said to be spread
        self.variables: list[str] = []  # of symbolic sizes
        self.parse: Callable[[str], Any] = int  # reads a symbolic size
        self.axes = dict(axes or {})
        self.callbacks: Functions = []
        self.channels = 0  # used by collectives so far
        self.functions: list[str] = []
        self._by_jaxpr: dict[Any, str] = {}
        self._keep_alive: list[Any] = []
        self._names: set[str] = {"main"}
        self.programs: dict[Any, ClosedJaxpr] = {}

    def _unique(self, hint: str) -> str:
        base = "".join(c if c.isalnum() or c in "_." else "_" for c in hint) or "fn"
        if base[0].isdigit():
            base = f"_{base}"
        name, n = base, 0
        while name in self._names:
            name, n = f"{base}_{n}", n + 1
        self._names.add(name)
        return name

    def private_function(self, closed: ClosedJaxpr, hint: str) -> str:
        """The name of the private function that computes `closed`, printed on first use."""
        key = (id(closed.jaxpr), tuple(map(id, closed.consts)))
        name = self._by_jaxpr.get(key)
        if name is None:
            name = self._unique(hint)
            self._by_jaxpr[key] = name
            self._keep_alive.append(closed)
            self.add_function(name, closed, "private")
        return name

    def add_function(
        self,
        name: str,
        closed: ClosedJaxpr,
        visibility: str,
        arg_attributes: Sequence[str] | None = None,
        result_attributes: Sequence[str] | None = None,
        body: Callable[[Builder, Sequence[Hlo]], list[Hlo]] | None = None,
        places: Sequence[str] = (),
    ) -> None:
        closed = on_plain_arrays(closed)
        names = _Names()
        block = Builder(self, names)
        if visibility == "public":
            block.scope = self.scope
        sizes = [ShapedArray((), dynamic_shapes.SIZE)] * len(self.variables) if body is None else []
        threaded = [AbstractToken()] if visibility == "private" and is_ordered(closed) else []
        args = [Hlo(f"%arg{i}", aval) for i, aval in enumerate((*sizes, *threaded, *closed.in_avals))]
        if sizes:
            names.sizes = dict(zip(self.variables, args))
            arg_attributes = [f'jax.global_constant = "{v}"' for v in self.variables] + [""] * len(args)
        first = len(sizes) + len(threaded)
        block.token = args[len(sizes)] if threaded else None
        outs = body(block, args) if body is not None else block.inline(closed, *args[first:])
        outs = [*(block.order(closed) if threaded else ()), *outs]
        block.terminate("func.return", outs)

        def decorated(attributes: Sequence[str] | None, i: int) -> str:
            return f" {{{attributes[i]}}}" if attributes and attributes[i] else ""

        params = ", ".join(
            f"{a.name}: {type_text(a.aval)}{decorated(arg_attributes, i)}{''.join(places[i:i + 1])}"
            for i, a in enumerate(args)
        )
        results = ", ".join(
            f"{type_text(o.aval)}{decorated(result_attributes, i)}" for i, o in enumerate(outs)
        )
        lines = "\n".join(f"    {line}" for line in block.lines)
        self.functions.append(f"  func.func {visibility} @{name}({params}) -> ({results}) {{\n{lines}\n  }}")

    def text(self) -> str:
        lines = "\n".join([*(self.meshes.definitions() if self.meshes else ()), *reversed(self.functions)])
        attributes = [f"mhlo.num_partitions = {self.meshes.devices if self.meshes else 1} : i32",
                      "mhlo.num_replicas = 1 : i32"]
        if self.variables:
            attributes.insert(0, "jax.uses_shape_polymorphism = true")
        return f"module @{self.name} attributes {{{', '.join(attributes)}}} {{\n{lines}\n}}\n"


class Builder:
    """Writes the operations of one block; the `m` of StableHLO rules."""

    __slots__ = ("_constants", "_names", "avals_in", "avals_out", "lines", "location", "module", "path", "primitive",
                 "scope", "token")

    def __init__(self, module: Module, names: _Names):
        self.module = module
        self._names = names
        self.lines: list[str] = []
        self._constants: dict[tuple[str, str], str] = {}
        self.avals_in: Sequence[Any] = ()
        self.avals_out: Sequence[Any] = ()
        self.primitive: Any = None
        self.token: Hlo | None = None  # of the last ordered effect so far
        self.scope = self.path = ""  # the scopes that the block and the equation being written stand in
        self.location = ""  # where that equation comes from, as text, if that is wanted

    # -- operations -----------------------------------------------------------------------------

    def op(
        self,
        name: str,
        operands: Sequence[Hlo],
        out_avals: Sequence[Any],
        attributes: str = "",
        regions: Sequence[str] = (),
    ) -> list[Hlo]:
        """Append the operation `name` and return its results.

        `attributes` is the inside of an MLIR attribute dictionary, `regions` are texts made by
        `region`. The result types are those of `out_avals`.
        """
        if self.module.variables and any(map(dynamic_shapes.is_dynamic, (*out_avals, *(x.aval for x in operands)))):
            name, operands, attributes = dynamic_shapes.dynamic(self, name, operands, out_avals, attributes)
        outs = [Hlo(self._names.fresh(), aval) for aval in out_avals]
        lhs = ", ".join(o.name for o in outs)
        args = ", ".join(x.name for x in operands)
        region_text = f" ({', '.join(regions)})" if regions else ""
        attribute_text = f" {{{attributes}}}" if attributes else ""
        in_types = ", ".join(type_text(x.aval) for x in operands)
        types = [type_text(a) for a in out_avals]
        out_types = types[0] if len(types) == 1 else f"({', '.join(types)})"
        text = f'"{name}"({args}){region_text}{attribute_text} : ({in_types}) -> {out_types}'
        self.lines.append((f"{lhs} = {text}" if outs else text) + self.location)
        return outs

    def op1(self, name: str, operands: Sequence[Hlo], out_aval: Any, attributes: str = "") -> Hlo:
        """`op` for operations with one result."""
        return self.op(name, operands, [out_aval], attributes)[0]

    def annotate(self, values: Sequence[Hlo], notes: Mapping[str, str | int | float | bool]) -> None:
        """Notes on the operations of this block that made these values."""
        if not notes:
            return
        made = {x.name for x in values}
        for i, line in enumerate(self.lines):
            results, equals, _ = line.partition(' = "')
            if equals and not made.isdisjoint(results.split(", ")):
                self.lines[i] = with_frontend_attributes(line, notes)

    def terminate(self, name: str, operands: Sequence[Hlo]) -> None:
        args = ", ".join(x.name for x in operands)
        types = ", ".join(type_text(x.aval) for x in operands)
        self.lines.append(f'"{name}"({args}) : ({types}) -> ()')

    def region(self, in_avals: Sequence[Any], fn: Callable[..., Any], scope: str = "") -> str:
        """The text of a region with one block: arguments of `in_avals`, results `fn(m2, *args)`. `scope` is a name for
        what stands in it."""
        inner = Builder(self.module, self._names)
        inner.scope, inner.location = f"{self.path}/{scope}" if scope else self.path, self.location
        args = [Hlo(self._names.fresh(), aval) for aval in in_avals]
        outs = fn(inner, *args)
        if isinstance(outs, Hlo):
            outs = [outs]
        inner.terminate("stablehlo.return", outs)
        header = ", ".join(f"{a.name}: {type_text(a.aval)}" for a in args)
        label = f"^bb0({header}):\n" if args else ""
        body = "\n".join(f"  {line}" for line in inner.lines)
        return f"{{\n{label}{body}\n}}"

    def custom_call(
        self,
        target: str,
        operands: Sequence[Hlo],
        out_avals: Sequence[Any],
        config: str = "",
        attributes: Sequence[str] = (),
        side_effect: bool = False,
    ) -> list[Hlo]:
        """Call a function that the client knows by name; `config` is the inside of its dictionary of attributes."""
        text = [f'call_target_name = "{target}"', "api_version = 4 : i32", f"backend_config = {{{config}}}"]
        if side_effect:
            text.append("has_side_effect = true")
        return self.op("stablehlo.custom_call", operands, out_avals, ", ".join([*text, *attributes]))

    def host_call(
        self,
        function: Callable[..., Sequence[Any]],
        results: Sequence[tuple[Sequence[int], Any]],
        operands: Sequence[Hlo],
        *,
        side_effect: bool = True,
        ordered: bool = False,
    ) -> list[Hlo]:
        """Call a Python function, which the client has by its number: NumPy arrays in, arrays of `results` out."""
        tokens = self.order() if ordered else []
        avals = [*(t.aval for t in tokens), *(ShapedArray(tuple(shape), dtype) for shape, dtype in results)]
        given = [*tokens, *operands]

        def called(*arrays: Any) -> tuple[Any, ...]:
            return (*arrays[:len(tokens)], *function(*arrays[len(tokens):]))

        callbacks = self.module.callbacks
        callbacks.append(called)
        layouts = (", ".join(row_major(x) for x in values) for values in ([x.aval for x in given], avals))
        attributes = [f"{side}_layouts = [{text}]" for side, text in zip(("operand", "result"), layouts, strict=True)]
        attributes += self.module.meshes.on_first_device(len(avals)) if self.module.meshes is not None else ()
        config = f"index = {len(callbacks) - 1} : ui64"
        target = "xla_ffi_python_cpu_callback"
        return self.proceed(tokens, self.custom_call(target, given, avals, config, attributes, side_effect))

    # -- the order of effects -------------------------------------------------------------------

    def order(self, *programs: ClosedJaxpr) -> list[Hlo]:
        """The token that comes after the ordered effects so far, if one of these programs has such; else nothing."""
        if programs and not any(map(is_ordered, programs)):
            return []
        if self.token is None:
            self.token = self.op1("stablehlo.after_all", [], AbstractToken())
        return [self.token]

    def proceed(self, tokens: Sequence[Hlo], values: Sequence[Hlo]) -> list[Hlo]:
        """`values` without the token in front, which becomes this block's, if `tokens` has one."""
        if not tokens:
            return list(values)
        self.token, *rest = values
        return rest

    # -- whole jaxprs ---------------------------------------------------------------------------

    def inline(self, closed: ClosedJaxpr, *args: Hlo, scope: str | None = None) -> list[Hlo]:
        """Write the equations of `closed` into this block and return its results. `scope` is where they stand, by
        names, if not where the block does."""
        consts = [self.const(c, v.aval) for c, v in zip(closed.consts, closed.jaxpr.constvars, strict=True)]
        return self._equations(closed.jaxpr, [*consts, *args], scope)

    def call(self, closed: ClosedJaxpr, *args: Hlo, name: str = "fn") -> list[Hlo]:
        """Call the private function that stands for `closed`."""
        callee = self.module.private_function(closed, name)
        sizes = [self.sizes[v] for v in self.module.variables]
        tokens = self.order(closed)
        avals = [*(t.aval for t in tokens), *closed.out_avals]
        return self.proceed(tokens, self.op("func.call", [*sizes, *tokens, *args], avals, f"callee = @{callee}"))

    def call_traced(self, fun: Callable[..., Any], *args: Hlo) -> list[Hlo]:
        """Trace `fun` (flat lists of arrays in and out) at the arguments' avals and write it here."""
        return self.inline(_traced(fun, args), *args)

    def call_program(self, fun: Callable[..., Any], *args: Hlo, name: str, **params: Hashable) -> list[Hlo]:
        """Call the private function for `fun`, of arrays and parameters: one for all arguments of the same types."""
        key = (fun, tuple((a.shape, a.dtype) for a in args), tuple(params.items()))
        closed = self.module.programs.get(key)
        if closed is None:
            closed = self.module.programs[key] = _traced(functools.partial(fun, **params), args)
        return self.call(closed, *args, name=name)

    def _equations(self, jaxpr: Jaxpr, args: Sequence[Hlo], within: str | None = None) -> list[Hlo]:
        env: dict[Any, Hlo] = dict(zip((*jaxpr.constvars, *jaxpr.invars), args, strict=True))

        def read(atom: Any) -> Hlo:
            return self.const(atom.val, atom.aval) if isinstance(atom, Literal) else env[atom]

        saved = self.avals_in, self.avals_out, self.primitive, self.scope, self.path, self.location
        scope = self.scope if within is None else within
        for eqn in jaxpr.eqns:
            self.avals_in = [x.aval for x in eqn.invars]
            self.avals_out = [v.aval for v in eqn.outvars]
            self.primitive = eqn.primitive
            if self.module.located:
                self.scope, self.path = locations.around(scope, eqn), locations.path(scope, eqn)
                self.location = locations.location(self.path, eqn.source_info)
            outs = self._equation(eqn, [read(x) for x in eqn.invars])
            if isinstance(outs, Hlo):
                outs = [outs]
            if eqn.ctx is not None:
                self.annotate(outs, eqn.ctx.xla_metadata)
            if self.module.meshes is not None and eqn.primitive.traits.program is None:
                outs = [self.constrained(x, getattr(v.aval, "given_sharding", None), True)
                        for x, v in zip(outs, eqn.outvars, strict=True)]
            env.update(zip(eqn.outvars, outs, strict=True))
        self.avals_in, self.avals_out, self.primitive, self.scope, self.path, self.location = saved
        return [read(x) for x in jaxpr.outvars]

    def _equation(self, eqn: Any, operands: list[Hlo]) -> Any:
        rule, program = rules.stablehlos.get(eqn.primitive), eqn.primitive.traits.program
        if rule is None and program is None:
            rule = hooks.rule_between_devices(eqn.primitive) or hooks.rule_of_factorisation(eqn.primitive)
        if rule is not None:
            outs = rule(self, *operands, **eqn.params)
            if outs is not NotImplemented:
                return outs
        if program is not None:
            inner = program(eqn.params)
            closed = inner if isinstance(inner, ClosedJaxpr) else ClosedJaxpr(inner, ())
            return self.call(closed, *operands, name=str(eqn.params.get("name") or locations.called(eqn)))
        raise LoweringError(
            f"primitive {eqn.primitive.name!r} has no lowering to StableHLO, so the program cannot run on "
            "this device; run it on the CPU, or register a rule in styrax.core.programs.rules.stablehlos"
        )

    # -- symbolic sizes ---------------------------------------------------------------------------
    @property
    def sizes(self) -> dict[str, Hlo]:
        """The values of the variables that sizes depend on."""
        return self._names.sizes

    def size(self, d: Any, dtype: Any) -> Hlo:
        """A size as a scalar."""
        return dynamic_shapes.size_value(self, d, dtype)

    def physical_shape(self, aval: Any) -> tuple[Any, ...]:
        return physical_aval(aval).shape

    def parse_size(self, text: str) -> Any:
        """The size that an attribute's text stands for."""
        return int(text) if text.strip().lstrip("-").isdigit() else self.module.parse(text)

    # -- shorthands -----------------------------------------------------------------------------

    def const(self, value: Any, aval: Any = None) -> Hlo:
        """A constant; `aval` gives shape and dtype (a scalar value is spread over the shape)."""
        if aval is None:
            value = np.asarray(value)
            aval = ShapedArray(value.shape, value.dtype)
        if isinstance(aval, AbstractToken):
            return self.op1("stablehlo.after_all", [], aval)
        physical = physical_aval(aval)
        if dynamic_shapes.is_dynamic(physical):
            scalar = self.const(np.asarray(value).reshape(-1)[0], ShapedArray((), physical.dtype))
            return self.broadcast_in_dim(scalar, aval, ())
        if physical is not aval:
            value = getattr(value, "_base_array", value)
        dtype = physical.dtype
        if element_type(dtype) == "i1":
            array = np.asarray(value).astype(np.bool_) if np.dtype(dtype).itemsize else np.zeros((), np.bool_)
        else:
            array = np.asarray(value).astype(dtype, copy=False)
        if array.shape != tuple(physical.shape):
            array = np.broadcast_to(array, physical.shape)
        return self._constant(array, aval)

    def _constant(self, array: np.ndarray, aval: Any) -> Hlo:
        key = (dense_text(array), type_text(aval))
        found = self._constants.get(key)
        if found is not None:
            return Hlo(found, aval)
        if array.size > 1 and array.dtype.itemsize == 1 and ELEMENT_TYPES[array.dtype.name][-1] in "124":
            # Packed element types have no portable raw form: store bytes and convert.
            wide = self._constant(array.astype(np.int8), ShapedArray(array.shape, np.dtype(np.int8)))
            out = self.op1("stablehlo.convert", [wide], aval)
        else:
            out = self.op1("stablehlo.constant", [], aval, f"value = {key[0]} : {key[1]}")
        self._constants[key] = out.name
        return out

    def full(self, value: Any, aval: Any) -> Hlo:
        """The number `value` spread over the shape of `aval`, in its dtype."""
        return self.const(value, ShapedArray(aval.shape, aval.dtype))

    def broadcast_in_dim(self, x: Hlo, aval: Any, dims: Sequence[int]) -> Hlo:
        if tuple(x.shape) == tuple(aval.shape):
            return x
        out = self.op1("stablehlo.broadcast_in_dim", [x], aval, f"broadcast_dimensions = {i64_array(dims)}")
        if self.module.meshes is None or not self.avals_out or self.avals_out[0].shape != aval.shape:
            return out
        return self.constrained(out, getattr(self.avals_out[0], "given_sharding", None), True)

    def broadcast_to(self, x: Hlo, aval: Any) -> Hlo:
        """Spread `x` over the shape of `aval` (scalars, or equal rank with dimensions of size one)."""
        if tuple(x.shape) == tuple(aval.shape):
            return x
        dims = range(len(x.shape)) if x.shape else ()
        return self.broadcast_in_dim(x, ShapedArray(aval.shape, x.dtype), dims)

    def convert(self, x: Hlo, dtype: Any) -> Hlo:
        if x.dtype == dtype:
            return x
        return self.op1("stablehlo.convert", [x], ShapedArray(x.shape, dtype))

    def compare(self, direction: str, x: Hlo, y: Hlo, kind: str | None = None) -> Hlo:
        """Compare elementwise; `direction` is EQ, NE, LT, LE, GT or GE."""
        if kind is None:
            letter = np.dtype(x.dtype).kind if isinstance(x.dtype, np.dtype) else "u"
            name = getattr(x.dtype, "name", "")
            if letter in "fc" or "float" in name:
                kind = "FLOAT"
            else:
                kind = "SIGNED" if name.startswith("int") else "UNSIGNED"
        attributes = (
            f"comparison_direction = #stablehlo<comparison_direction {direction}>, "
            f"compare_type = #stablehlo<comparison_type {kind}>"
        )
        return self.op1("stablehlo.compare", [x, y], ShapedArray(x.shape, np.dtype(np.bool_)), attributes)

    def foreign_call(self, target: str, operands: Sequence[Hlo], out_avals: Sequence[Any],
                    attributes: Mapping[str, Any] | None, *, has_side_effect: bool, api_version: int,
                    operand_layouts: Sequence[Sequence[int]], result_layouts: Sequence[Sequence[int]],
                    aliases: Sequence[tuple[int, int]] = (), backend_config: str = "") -> list[Hlo]:
        """A call of a foreign function. Layouts name dimensions from the fastest to the slowest; `aliases` are pairs of
        an operand's and a result's number."""
        layouts = lambda given: f"[{', '.join(map(layout_text, given))}]"
        texts = [f'call_target_name = "{target}"', f"api_version = {api_version} : i32",
                 f"has_side_effect = {str(has_side_effect).lower()}", f'backend_config = "{backend_config}"',
                 f"operand_layouts = {layouts(operand_layouts)}", f"result_layouts = {layouts(result_layouts)}"]
        if attributes is not None:
            texts.append(f"mhlo.backend_config = {attribute_text(dict(attributes))}")
        if aliases:
            indices = [(k if len(out_avals) > 1 else "", i) for i, k in aliases]
            texts.append("output_operand_aliases = [" + ", ".join(
                f"#stablehlo.output_operand_alias<output_tuple_indices = [{k}], operand_index = {i}, "
                "operand_tuple_indices = []>" for k, i in indices) + "]")
        return self.op("stablehlo.custom_call", operands, out_avals, ", ".join(texts))

    def select(self, which: Hlo, on_true: Hlo, on_false: Hlo) -> Hlo:
        return self.op1("stablehlo.select", [which, on_true, on_false], on_true.aval)

    def constrained(self, x: Hlo, told: Sharding | None, of_type: bool = False) -> Hlo:
        """The same value, said to be spread as `told` where the module tells shardings. `of_type`: told by its type,
        which says nothing of axes that are not explicit."""
        if self.module.meshes is None:
            return x
        text = self.module.meshes.sharding(told, len(self.physical_shape(x.aval)), of_type)
        last = self.lines[-1] if self.lines else ""
        if not text or last.startswith(f'{x.name} = "sdy.') and f"#sdy.sharding{text}" in last:  # as it was said to be
            return x
        return self.op1("sdy.sharding_constraint", [x], x.aval, f"sharding = #sdy.sharding{text}")

    def reshape(self, x: Hlo, shape: Sequence[int]) -> Hlo:
        if tuple(x.shape) == tuple(shape):
            return x
        return self.op1("stablehlo.reshape", [x], ShapedArray(tuple(shape), x.dtype))


def _traced(fun: Callable[..., Any], args: Sequence[Hlo]) -> ClosedJaxpr:
    """The program of a function of arrays at the types of these."""
    from styrax.core.tracing.staging import trace_to_jaxpr

    def flat(*xs: Any) -> list[Any]:
        out = fun(*xs)
        return list(out) if isinstance(out, (list, tuple)) else [out]

    return trace_to_jaxpr(flat, [_without_sharding(a.aval) for a in args])


def row_major(aval: Any) -> str:
    """The layout of a custom call's operand or result whose last dimension is contiguous."""
    rank = 0 if isinstance(aval, AbstractToken) else len(physical_aval(aval).shape)
    return f"dense<{list(reversed(range(rank))) or ''}> : tensor<{rank}xindex>"


@depth.room()
def module(
    closed: ClosedJaxpr, name: str = "jit_main", *,
    told: tuple[Told, Told] | None = None,
    axes: Mapping[Hashable, int] | None = None,
    symbolic: tuple[Sequence[Any], Sequence[Any], str, Callable[[str], Any]] | None = None,
    located: bool = False,
    libraries: Collection[str] = ("lapack",),
    names: Sequence[str] = (),
) -> Module:
    """`closed` as a StableHLO module whose public function `main` computes it.

    `told` holds, for arguments and for results, the inside of an MLIR attribute dictionary for each, or empty strings,
    and how each is spread, or None; with it the module also tells how values are spread whose types do. `axes` are the
    names and sizes of the mesh that collectives work over. Raises `LoweringError` when a primitive has no rule, and
    `NameError` for a collective over an axis that the mesh lacks.

    `symbolic`, for symbolic sizes: how variables are found (as `dynamic_shapes.Found`), what else the shapes promise
    (`Promise`), the shapes as text for messages, and what reads an expression. `located`: whether operations tell
    the scopes and the line of the user's program that they come from. `libraries`: whose routines the client knows by
    name; "lapack" is what JAX's clients for CPUs know. `names`: the arguments' in the user's program.
    """
    made = Module(name, axes, located, libraries, told is not None)
    ins = outs = None
    if told is not None and made.meshes is not None:
        ins, outs = (made.meshes.attributes(*given, avals)
                     for given, avals in zip(told, (closed.in_avals, closed.out_avals), strict=True))
    places = [f" loc({json.dumps(name)})" for name in names]
    if symbolic is not None:
        found, promises, described, made.parse = symbolic
        dynamic_shapes.add_main(made, closed, [dynamic_shapes.Found(*f) for f in found],
                                [dynamic_shapes.Promise(*p) for p in promises], described, ins, outs, places)
        return made
    made.add_function("main", closed, "public", ins, outs, places=places)
    return made


def module_text(closed: ClosedJaxpr, name: str = "jit_main", **options: Any) -> str:
    """The text of `module`, which takes the same options."""
    return module(closed, name, **options).text()
