"""Draws programs. JAX tells the types of what each step gives; a step that it refuses is left out, but for a few."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

import jax
import numpy as np

from tests.fuzz import programs, values
from tests.fuzz.draw import Call, Draw, Nothing
from tests.fuzz.programs import Function, Layer, Program, Step
from tests.fuzz.rows import Row
from tests.fuzz.table import ROWS
from tests.fuzz.transformations import CONTROL, LAYERS, Transformation
from tests.fuzz.values import FLOATS, Type

LARGEST = 64  # elements of a value
LARGE = 600  # of one in a large program
DEEPEST = 5  # transformations one inside the other
DERIVED = 3  # of which take slopes
NAMED = 25  # how much more often than others operations over a named axis are drawn where there is one
STEPS = (1, 2, 2, 3, 3, 4, 6)  # of a program
NESTED = 0.2  # how often a step is a transformed function


class Refused(Exception):
    """JAX does not accept a step."""


@dataclass(frozen=True)
class Place:
    """What surrounds a function: depth, whether slopes are taken, names of axes, whether outer values are used."""

    depth: int = 0
    derived: bool = False
    axes: tuple[tuple[str, int], ...] = ()
    around: tuple[str, ...] = ()  # transformations, outermost first
    closes: bool = True


def infer(step: Step, env: dict[str, Type], axes: Sequence[tuple[str, int]], largest: int = LARGEST) -> list[Type]:
    """The types of a step's results, as far as JAX says them. Refused where it raises."""
    used = [name for name in env if name in free(step)]
    f = programs.build(Function("step", tuple(used), (step,), step.outs), "jax")
    structs = [jax.ShapeDtypeStruct(env[n].shape, env[n].dtype, weak_type=env[n].weak) for n in used]
    try:
        avals = jax.make_jaxpr(f, axis_env=axes)(*structs).out_avals
    except Exception as error:
        raise Refused from error
    found = [Type(tuple(map(int, a.shape)), str(a.dtype), bool(a.weak_type), a.dtype.kind in "biu") for a in avals]
    if any(t.size > largest or t.rank > 4 or t.dtype not in values.ALL for t in found):
        raise Nothing
    return found


def free(step: Step) -> set[str]:
    """Names of values from outside that a step uses."""
    names = {*step.ins, *(v for layer in step.stack for v in layer.uses)}
    for f in step.functions:
        inner = set(f.outs).union(*map(free, f.steps)) if f.steps else set(f.outs)
        names |= inner - {*f.params, *(v for s in f.steps for v in s.outs)}
    return names


@dataclass
class Generator:
    """Draws the programs of a seed one after the other; the counts decide what is favoured."""

    seed: int
    index: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    pairs: Counter[str] = field(default_factory=Counter)
    table: Sequence[Row] = tuple(ROWS)

    def program(self) -> Program:
        drawn = Session(self, Random(f"{self.seed}:{self.index}")).program(f"{self.seed}:{self.index}")
        self.index += 1
        for step in programs.walk(drawn.main):
            self.rows[step.row] += 1
        self.pairs.update({f"{a} > {b}" for a, b in programs.pairs(drawn.main)})
        return drawn


class Session:
    """One program while it is drawn."""

    def __init__(self, generator: Generator, rng: Random):
        self.generator = generator
        self.rng = rng
        self.x64 = rng.random() < 0.5
        self.wild = rng.random() < 0.4
        self.large = rng.random() < 0.15
        self.types: dict[str, Type] = {}
        self.args: dict[str, np.ndarray] = {}
        self.names = 0

    def name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def program(self, title: str) -> Program:
        with jax.enable_x64(self.x64):
            while True:
                self.types.clear()
                self.args.clear()
                steps = self.steps({}, self.rng.choice(STEPS), Place())
                outs = self.results(steps, [], 4)
                if outs:
                    break
        main = Function("program", tuple(self.args), tuple(steps), outs)
        return Program(main, tuple(self.args.values()), dict(self.types), self.x64, title)

    # -- values ------------------------------------------------------------------------------------------------

    def argument(self, shape: tuple[int, ...], dtype: str) -> str:
        name = self.name()
        self.types[name] = Type(shape, dtype)
        self.args[name] = values.draw(self.rng, shape, dtype, self.wild)
        return name

    def constant(self, shape: tuple[int, ...], dtype: str, env: dict[str, Type], steps: list[Step]) -> str:
        """An array in the text, or a plain number."""
        x = values.draw(self.rng, shape, dtype, self.wild)
        defaults = ("float64", "int64") if self.x64 else ("float32", "int32")
        weak = shape == () and dtype in (*defaults, "bool") and self.rng.random() < 0.5
        plain = values.plain_text(x.item()) if weak else values.text(x)
        name = self.name()
        steps.append(Step("constant", f"constant({plain})", (), (name,), single=True))
        self.types[name] = env[name] = Type(shape, dtype, weak and dtype != "bool")
        return name

    # -- steps -------------------------------------------------------------------------------------------------

    def steps(self, env: dict[str, Type], count: int, place: Place) -> list[Step]:
        """Steps over an environment, which they extend."""
        steps: list[Step] = []
        for _ in range(count):
            nested = place.depth < DEEPEST and self.rng.random() < NESTED + 0.1 * (place.depth == 0)
            for _ in range(8):
                before = dict(env), list(steps), dict(self.args)
                try:
                    step = self.nested(env, steps, place) if nested else self.operation(env, steps, place)
                    break
                except Nothing:
                    pass
                except Refused as refused:
                    step = refused.args[0] if refused.args else None
                    if isinstance(step, Step) and place.depth == 0 and self.rng.random() < 0.004:
                        return [*steps, step]
                env.clear()
                env.update(before[0])
                steps[:] = before[1]
                self.args = before[2]
            else:
                continue
            steps.append(step)
        return steps

    def draw(self, env: dict[str, Type], steps: list[Step], place: Place, only_exact: bool = False) -> Draw:
        def fresh(shape: tuple[int, ...], dtype: str) -> str:
            if place.depth and (not place.closes or self.rng.random() < 0.5) or self.rng.random() < 0.1:
                return self.constant(shape, dtype, env, steps)
            name = self.argument(shape, dtype)
            env[name] = self.types[name]
            return name

        return Draw(self.rng, env, self.x64, fresh, only_exact, place.axes, self.large)

    def operation(self, env: dict[str, Type], steps: list[Step], place: Place) -> Step:
        rows = [r for r in self.generator.table if place.axes or not r.needs_axis]
        seen = self.generator.rows
        weights = [(NAMED if r.needs_axis else 1) / (1 + seen[r.title]) for r in rows]
        row = self.rng.choices(rows, weights)[0]
        return self.row(row, env, steps, place)

    def row(self, row: Row, env: dict[str, Type], steps: list[Step], place: Place) -> Step:
        only_exact = row.kind in ("jump", "cut") or row.kind == "kink" and place.derived
        call = row.make(self.draw(env, steps, place, only_exact))
        exact = row.kind not in ("smooth", "cut") and all(env[n].exact for n in call.ins)
        # a derivative rounds in terms that the value does not have
        composed = row.composed or row.kind == "smooth" and place.derived
        return replace(self.typed(row.title, call, env, place, exact), composed=composed)

    def typed(
        self,
        title: str,
        call: Call,
        env: dict[str, Type],
        place: Place,
        exact: bool,
        functions: tuple[Function, ...] = (),
        stack: tuple[Layer, ...] = (),
        each: Sequence[bool] | None = None,
    ) -> Step:
        """The step of a call, whose results join the environment."""
        probe = Step(title, call.code, call.ins, ("out",), functions, stack, single=True)
        count = self.infer_many(probe, env, place)
        outs = tuple(self.name() for _ in count)
        if not outs:
            raise Nothing
        for i, (name, t) in enumerate(zip(outs, count, strict=True)):
            good = each[i] if each is not None and len(each) == len(count) else exact
            self.types[name] = env[name] = replace(t, exact=t.exact or good)
        return replace(probe, outs=outs, single=call.single and not stack)

    def infer_many(self, probe: Step, env: dict[str, Type], place: Place) -> list[Type]:
        try:
            return infer(probe, env, place.axes, LARGE if self.large else LARGEST)
        except Refused:
            raise Refused(replace(probe, outs=(self.name(),))) from None

    # -- functions in functions --------------------------------------------------------------------------------

    def function(
        self,
        types: Sequence[Type],
        outer: dict[str, Type],
        place: Place,
        count: int | None = None,
    ) -> tuple[list[str], dict[str, Type], list[Step]]:
        """Parameters, environment and steps of a new function."""
        env = dict(outer) if place.closes and self.rng.random() < 0.5 else {}
        params = [self.name() for _ in types]
        for name, t in zip(params, types, strict=True):
            self.types[name] = env[name] = t
        return params, env, self.steps(env, count or self.rng.randint(1, 3), place)

    def results(self, steps: Sequence[Step], params: Sequence[str], most: int) -> tuple[str, ...]:
        """What a function gives: the last results that nothing uses."""
        made = [v for s in steps if s.row != "constant" for v in s.outs]
        used = {v for s in steps for v in free(s)}
        last = [v for v in made if v not in used] or made[-1:] or list(params[:1])
        return tuple(last[-most:])

    def nested(self, env: dict[str, Type], steps: list[Step], place: Place) -> Step:
        """A step that calls a transformed function."""
        d = self.draw(env, steps, place)
        able = values.ALL if self.rng.random() < 0.3 else FLOATS
        ins = [d.value(able) for _ in range(self.rng.randint(1, 3))]
        room = DEEPEST - place.depth
        slopes = DERIVED - sum(t.derives for t in LAYERS for name in place.around if t.name == name)
        kinds: list[Transformation] = []
        around = place.around
        control = self.rng.random() < 0.4
        for _ in range(self.rng.choice((0, 0, 1)) if control else self.rng.choice((1, 1, 2, 3))):
            if len(kinds) < room - control:
                able_layers = [t for t in LAYERS if not t.derives or sum(k.derives for k in kinds) < slopes]
                weights = [self.weight(around, t.name) for t in able_layers]
                kinds.append(self.rng.choices(able_layers, weights)[0])
                around = (*around, kinds[-1].name)
        types: Sequence[Type] = [env[n] for n in ins]
        stack: list[Layer] = []
        axes = place.axes
        for kind in kinds:
            plan = kind.plan(self.rng, types)
            if plan.axis:
                outer = next(t for t, u in zip(types, plan.types, strict=True) if t.rank != u.rank)
                inner = next(u for t, u in zip(types, plan.types, strict=True) if t.rank != u.rank)
                (size,) = (Counter(outer.shape) - Counter(inner.shape)).elements()
                axes = (*axes, (plan.axis, size))
            types = plan.types
            stack.append(Layer(kind.name, plan.code))
        derived = place.derived or any(k.derives for k in kinds)
        inside = Place(
            place.depth + len(kinds) + control, derived, axes, around, place.closes and all(k.closes for k in kinds)
        )
        keeps = all(k.keeps for k in kinds)
        if control:
            name = self.rng.choices(CONTROL, [self.weight(around, c) for c in CONTROL])[0]
            inside = replace(inside, around=(*around, name))
            layer, functions, exacts = Control(self, env, inside, list(types)).make(name)
            stack.append(layer)
            title = name
        else:
            if not stack:
                raise Nothing
            params, inner_env, inner_steps = self.function(types, env, inside)
            outs = self.results(inner_steps, params, 3)
            functions = (Function(f"f{self.name()}", tuple(params), tuple(inner_steps), outs),)
            exacts = [inner_env[o].exact for o in outs]
            title = stack[0].name
        return self.typed(
            title, Call("", tuple(ins), False), env, place, False, functions, tuple(stack), exacts if keeps else None
        )

    def weight(self, around: Sequence[str], name: str) -> float:
        least = min((self.generator.pairs[f"{a} > {name}"] for a in around), default=3)
        return 1 / (1 + least)


DECIDING = ("bool", "int8", "int32", "uint8", "float32", "float64")


class Control:
    """Draws control flow: functions whose results must have the types of their operands, or of each other."""

    def __init__(self, session: Session, env: dict[str, Type], place: Place, types: list[Type]):
        self.session, self.env, self.place, self.types = session, env, place, types
        self.rng = session.rng

    def make(self, name: str) -> tuple[Layer, tuple[Function, ...], list[bool]]:
        return getattr(self, name)()

    def layer(self, name: str, code: str, *uses: str) -> Layer:
        return Layer(name, code, uses)

    def rounded(self, types: Sequence[Type]) -> list[Type]:
        """Types of what comes back: no float of a loop is exact."""
        return [replace(t, exact=not t.inexact) for t in types]

    def fitting(
        self, types: Sequence[Type], env: dict[str, Type], params: Sequence[str], steps: list[Step]
    ) -> list[str]:
        """For each type a value of it, as late as possible; at times what came in place of another."""
        found = []
        for wanted, param in zip(types, params, strict=True):
            same = [
                v
                for s in steps
                for v in s.outs
                if v in env
                and s.row != "constant"
                and (env[v].shape, env[v].dtype, env[v].weak) == (wanted.shape, wanted.dtype, wanted.weak)
            ]
            late = [v for s in steps for v in s.outs if v in env and env[v].dtype in FLOATS and s.row != "constant"]
            if not same and late and wanted.dtype in FLOATS and not wanted.weak:
                call = Call("lax.add({0}, lax.convert_element_type(jnp.sum({1}), {0}.dtype))", (param, late[-1]))
                step = replace(self.session.typed("add", call, env, self.place, False), composed=True)
                steps.append(step)
                same = [step.outs[0]]
            alike = [p for t, p in zip(types, params, strict=True) if p != param and t == wanted]
            if alike and self.rng.random() < 0.3:
                found.append(self.rng.choice(alike))
            else:
                found.append(same[-1] if same else param)
        return found

    def body(
        self, types: Sequence[Type], extra: Sequence[Type], before: bool = False
    ) -> tuple[Function, list[str], int]:
        """A function of carried values and others: new carried values, and at most one result more."""
        given = [*extra, *types] if before else [*types, *extra]
        params, env, steps = self.session.function(given, self.env, self.place)
        carried = params[len(extra) :] if before else params[: len(types)]
        outs = self.fitting(types, env, carried, steps)
        return Function(f"f{self.session.name()}", tuple(params), tuple(steps), tuple(outs)), params, len(steps)

    def bound(self) -> tuple[str, tuple[str, ...]]:
        """A number of turns: a plain one, or one from data."""
        names = [n for n, t in self.env.items() if t.dtype == "int32" and t.size]
        if names and self.rng.random() < 0.6 and self.place.closes:
            name = self.rng.choice(names)
            return f"count({name})", (name,)
        return str(self.rng.randint(0, 3)), ()

    def scan(self) -> tuple[Layer, tuple[Function, ...], list[bool]]:
        cut = self.rng.randint(0, len(self.types))
        lengths = {t.shape[0] for t in self.types[cut:] if t.rank}
        if any(not t.rank for t in self.types[cut:]) or len(lengths) > 1:
            cut = len(self.types)
        carries = self.rounded(self.types[:cut])
        xs = [replace(t, shape=t.shape[1:], weak=False) for t in self.types[cut:]]
        f, params, _ = self.body(carries, xs)
        made = [v for s in f.steps for v in s.outs if s.row != "constant"][-1:]
        f = replace(f, outs=(*f.outs, *made))
        options = f", length={self.rng.randint(0, 3)}" if cut == len(self.types) else ""
        turns = ("", "", ", reverse=True", ", unroll=2", ", unroll=True", ", reverse=True, unroll=3")
        options += self.rng.choice(turns)
        return self.layer("scan", f"scanned({{f}}, {cut}{options})"), (f,), []

    def own(self, dtypes: Sequence[str] = DECIDING) -> int | None:
        """An operand that both libraries know exactly, on which control flow may depend: under a `vmap`, each
        element goes its own way."""
        able = [i for i, t in enumerate(self.types) if t.exact and t.dtype in dtypes]
        return self.rng.choice(able) if able and self.rng.random() < 0.6 else None

    def while_loop(self) -> tuple[Layer, tuple[Function, ...], list[bool]]:
        f, _, _ = self.body(self.rounded(self.types), [])
        searched = self.own(("int32", "int8", "bool"))
        if searched is not None:
            return self.layer("while_loop", f"searched({{f}}, {searched})"), (f,), []
        own = self.own()
        if own is not None:
            return self.layer("while_loop", f"own_loop({{f}}, {own})"), (f,), []
        bound, uses = self.bound()
        return self.layer("while_loop", f"loop({{f}}, {bound})", *uses), (f,), []

    def fori_loop(self) -> tuple[Layer, tuple[Function, ...], list[bool]]:
        weak = Type((), "int64" if self.session.x64 else "int32", True)
        bound, uses = self.bound()
        if uses:
            weak = Type((), "int32", False)
        f, _, _ = self.body(self.rounded(self.types), [weak], before=True)
        unrolled = "" if uses else self.rng.choice(("", "", ", unroll=2", ", unroll=True"))
        return self.layer("fori_loop", f"counted({{f}}, 0, {bound}{unrolled})", *uses), (f,), []

    def _branches(self, count: int) -> tuple[tuple[Function, ...], list[bool]]:
        drawn = [self.session.function(self.types, self.env, self.place) for _ in range(count)]
        params, env, steps = drawn[0]
        first = self.session.results(steps, params, 2)
        made, exact = [], [True] * len(first)
        wanted = [env[o] for o in first]
        for i, (params, env, steps) in enumerate(drawn):
            outs: tuple[str, ...] = first
            if i:
                outs = tuple(self.match(w, env, params, steps) for w in wanted)
            exact = [e and env[o].exact for e, o in zip(exact, outs, strict=True)]
            made.append(Function(f"f{self.session.name()}", tuple(params), tuple(steps), outs))
        return tuple(made), exact

    def match(self, wanted: Type, env: dict[str, Type], params: Sequence[str], steps: list[Step]) -> str:
        same = [
            v
            for v in (*params, *(v for s in steps for v in s.outs))
            if v in env and (env[v].shape, env[v].dtype, env[v].weak) == (wanted.shape, wanted.dtype, wanted.weak)
        ]
        if same:
            return same[-1]
        late = [v for s in steps for v in s.outs if v in env and env[v].dtype in FLOATS]
        if late and wanted.dtype in FLOATS:
            call = Call(f"jnp.full({wanted.shape}, jnp.sum({{0}}), dtype('{wanted.dtype}'))", (late[-1],))
        else:
            call = Call(f"jnp.ones({wanted.shape}, dtype('{wanted.dtype}'))")
        steps.append(replace(self.session.typed("full", call, env, self.place, not call.ins), composed=True))
        return steps[-1].outs[0]

    def chooser(self) -> str:
        names = [n for n, t in self.env.items() if t.exact and t.dtype in ("bool", "int32", "float32")]
        if not names or not self.place.closes:
            raise Nothing
        return self.rng.choice(names)

    def cond(self) -> tuple[Layer, tuple[Function, ...], list[bool]]:
        own = self.own()
        if own is not None:
            functions, exact = self._branches(2)
            return self.layer("cond", f"own_either({own}, {{0}}, {{1}})"), functions, exact
        name = self.chooser()
        functions, exact = self._branches(2)
        return self.layer("cond", f"either(truth({name}), {{0}}, {{1}})", name), functions, exact

    def switch(self) -> tuple[Layer, tuple[Function, ...], list[bool]]:
        number, own = self.rng.choice(("count", "index")), self.own()
        if own is not None:
            functions, exact = self._branches(3)
            return self.layer("switch", f"own_branches({own}, {number}, {{0}}, {{1}}, {{2}})"), functions, exact
        name = self.chooser()
        functions, exact = self._branches(3)
        return self.layer("switch", f"branches({number}({name}), {{0}}, {{1}}, {{2}})", name), functions, exact

    def map(self) -> tuple[Layer, tuple[Function, ...], list[bool]]:
        if any(not t.rank for t in self.types) or len({t.shape[0] for t in self.types}) > 1:
            raise Nothing
        inner = [replace(t, shape=t.shape[1:], weak=False) for t in self.types]
        params, env, steps = self.session.function(inner, self.env, self.place)
        outs = self.session.results(steps, params, 2)
        size = self.rng.choice(("", "", ", batch_size=2"))
        f = Function(f"f{self.session.name()}", tuple(params), tuple(steps), outs)
        return self.layer("map", f"mapped({{f}}{size})"), (f,), [env[o].exact for o in outs]

    def associative_scan(self) -> tuple[Layer, tuple[Function, ...], list[bool]]:
        along = [i for i, t in enumerate(self.types) if t.rank]
        if not along:
            raise Nothing
        at = self.rng.choice(along)
        t = self.types[at]
        axis, reverse = self.rng.randint(0, t.rank - 1), self.rng.random() < 0.5
        if self.rng.random() < 0.7:
            inner = self.rounded([replace(t, shape=t.shape[:axis] + t.shape[axis + 1 :], weak=False)])
            f, _, _ = self.body(inner, inner)
            code = f"running(each({{f}}, {axis}), {at}, reverse={reverse}, axis={axis})"
            return self.layer("associative_scan", code), (f,), [t.exact and not t.inexact]
        able = ["add", "mul"] if t.dtype in values.NUMBERS else []
        able += ["max", "min"] if t.dtype in (*values.INTS, *FLOATS) and (t.exact or not self.place.derived) else []
        if not able:
            raise Nothing
        a, b, out = (self.session.name() for _ in range(3))
        for name in (a, b, out):
            self.session.types[name] = replace(t, exact=t.exact and not t.inexact)
        row = self.rng.choice(able)
        step = Step(row, f"lax.{row}({{0}}, {{1}})", (a, b), (out,), single=True)
        f = Function(f"f{self.session.name()}", (a, b), (step,), (out,))
        if row == "mul" and self.rng.random() < 0.5:
            code = f"recurrent({{f}}, {at}, reverse={reverse}, axis={axis})"
            return self.layer("associative_scan", code), (f,), [t.exact and not t.inexact] * 2
        return (
            self.layer("associative_scan", f"running({{f}}, {at}, reverse={reverse}, axis={axis})"),
            (f,),
            [t.exact and row in ("max", "min")],
        )


def single_row(row: Row, seed: int) -> Program:
    """A program of one operation, under a named vmap if it needs that."""
    generator = Generator(seed, table=(row,))
    for attempt in range(200):
        session = Session(generator, Random(f"{seed}:{row.title}:{attempt}"))
        with jax.enable_x64(session.x64):
            try:
                if row.needs_axis:
                    x = session.argument((2, 3), "float32")
                    env: dict[str, Type] = {}
                    p = session.name()
                    session.types[p] = env[p] = Type((3,), "float32")
                    place = Place(1, False, (("axis", 2),), ("vmap with a name",))
                    inner: list[Step] = []
                    inner.append(session.row(row, env, inner, place))
                    f = Function("inner", (p,), tuple(inner), inner[-1].outs)
                    outer: dict[str, Type] = {x: session.types[x]}
                    stack = (Layer("vmap with a name", "jax.vmap({f}, axis_name='axis')"),)
                    steps = [
                        session.typed("vmap with a name", Call("", (x,), False), outer, Place(), False, (f,), stack)
                    ]
                else:
                    steps = []
                    step = session.row(row, {}, steps, Place())
                    steps.append(step)
            except (Nothing, Refused):
                continue
        main = Function("program", tuple(session.args), tuple(steps), steps[-1].outs)
        return Program(main, tuple(session.args.values()), dict(session.types), session.x64, row.title)
    raise LookupError(f"no program of the row {row.title}")
