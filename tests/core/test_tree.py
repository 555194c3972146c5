"""Pytrees: structures, leaves, texts and messages, compared with JAX."""

import copy
import dataclasses
import functools
import gc
import pickle
import random
import re
import timeit
import weakref
from collections import OrderedDict, defaultdict, deque, namedtuple

import jax.tree_util as theirs
import pytest
from jax._src import tree_util as inner

from styrax.core.trees import registry, tree, tree_paths

pytestmark = pytest.mark.usefixtures("old_objects_aside")

Point = namedtuple("Point", "x y")
Other = namedtuple("Other", "x y")


class Box:
    def __init__(self, content, label):
        self.content, self.label = content, label

    def __repr__(self):
        return f"Box({self.content}, {self.label})"

    def __eq__(self, other):
        return type(other) is Box and (self.content, self.label) == (other.content, other.label)


@dataclasses.dataclass
class Pair:
    x: object
    y: object = 0
    name: str = dataclasses.field(default="n", metadata={"static": True})


class Keyed:
    def __init__(self, a):
        self.a = a

    def __eq__(self, other):
        return type(other) is Keyed and self.a == other.a

    def __repr__(self):
        return f"Keyed({self.a})"

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children)


class Static:
    def __init__(self, a):
        self.a = a

    def __eq__(self, other):
        return type(other) is Static and self.a == other.a

    def __hash__(self):
        return hash(self.a)

    def __repr__(self):
        return f"Static({self.a})"


class NotATuple(tuple):
    pass


def flatten_box(box):
    return (box.content,), box.label


for library in (tree, theirs):
    library.register_pytree_node(Box, flatten_box, lambda label, children: Box(children[0], label))
    library.register_static(Static)
tree_paths.register_dataclass(Pair)
theirs.register_dataclass(Pair)
tree_paths.register_pytree_with_keys(
    Keyed, lambda k: (((tree_paths.GetAttrKey("a"), k.a),), None), Keyed.tree_unflatten
)
theirs.register_pytree_with_keys(
    Keyed, lambda k: (((theirs.GetAttrKey("a"), k.a),), None), Keyed.tree_unflatten
)

EXAMPLES = [
    1,
    None,
    (),
    [],
    {},
    (1,),
    [1],
    {"a": 1},
    Point(1, 2),
    Box(1, "q"),
    Pair(1),
    OrderedDict(b=1, a=2),
    defaultdict(int, b=1, a=2),
    {2: 1, 1: 1},
    {True: 1},
    {1: 1},
    {1.0: 1},
    deque([1]),
    (1, (2,)),
    {(1, 2): 3},
    [None, ()],
    OrderedDict(),
    {"b": 1, "a": 2},
    {"b": 1, "a": (2, [3, None])},
    Keyed(3),
    Static(4),
    [Static(4), 1],
    NotATuple((1, 2)),
    Box((1, {"c": 2}), 1),
    Box(1, 1.0),
    Box(1, True),
    Box(1, [1]),
    Box(Box(1, "a"), ("b", 3)),
    [[[[]]]],
    list(range(300)),
    {f"k{i}": i for i in range(40)},
    Point((1, 2), None),
    ("a", b"c", 1.5),
]


def name(x):
    return repr(x)[:40]


def partials():
    f = functools.partial(max, 1)
    for library in (tree, theirs):
        yield [
            library.Partial(max, 1, k=2),
            library.Partial(f, 2),
            library.Partial(library.Partial(max, 1), 2),
        ]


def outcome(f, *args, **kwargs):
    try:
        return f(*args, **kwargs)
    except Exception as e:
        return type(e).__name__, str(e)


def text(x):
    """Values of the two libraries in words, so that they can be compared."""
    return repr(x)


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_structure(example):
    leaves, structure = tree.tree_flatten(example)
    their_leaves, their_structure = theirs.tree_flatten(example)
    assert leaves == their_leaves
    assert repr(structure) == repr(their_structure)
    assert structure.num_leaves == their_structure.num_leaves
    assert structure.num_nodes == their_structure.num_nodes
    assert structure.node_data() == their_structure.node_data()
    assert list(map(repr, structure.children())) == list(map(repr, their_structure.children()))
    assert tree.treedef_is_leaf(structure) == theirs.treedef_is_leaf(their_structure)


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_round_trip(example):
    leaves, structure = tree.tree_flatten(example)
    for _ in range(6):  # the later rounds go through generated code
        again = structure.unflatten(leaves)
        assert again == example
        assert type(again) is type(example)
        assert text(again) == text(theirs.tree_unflatten(theirs.tree_structure(example), leaves))
    assert tree.tree_structure(example) == structure
    assert hash(tree.tree_structure(example)) == hash(structure)
    assert copy.deepcopy(structure) == structure
    assert pickle.loads(pickle.dumps(structure)) == structure
    rebuilt = tree.PyTreeDef.from_node_data_and_children(
        registry.default_registry, structure.node_data(), structure.children()
    )
    assert rebuilt == structure


def test_equality_of_structures():
    ours = [tree.tree_structure(x) for x in EXAMPLES]
    others = [theirs.tree_structure(x) for x in EXAMPLES]
    for a, ja in zip(ours, others):
        for b, jb in zip(ours, others):
            assert (a == b) == (ja == jb), (a, b)
            assert (a != b) == (ja != jb), (a, b)
            if a == b:
                assert hash(a) == hash(b)


def test_plain_structures_are_interned():
    a = {"x": [1, (2, 3)], "y": Point(1, None)}
    b = {"y": Point(5, None), "x": [1, (2, 3)]}
    assert tree.tree_structure(a) is tree.tree_structure(b)
    assert tree.tree_structure(Box(1, ("a", 3))) is tree.tree_structure(Box(2, ("a", 3)))


def test_static_data_keep_their_type():
    for label in (1, 1.0, True, 0.0, -0.0):
        assert repr(tree.tree_map(lambda x: x, Box(0, label)).label) == repr(label)


def test_partial():
    for ours, other in zip(*partials()):
        # 3.13 prints the module
        text = repr(tree.tree_structure(ours)).replace("styrax.core.trees.tree.", "jax.tree_util.")
        assert text == repr(theirs.tree_structure(other))
        assert tree.tree_leaves(ours) == theirs.tree_leaves(other)
        assert ours(3) == other(3) if not ours.keywords else True
        again = tree.tree_map(lambda x: x, ours)
        assert (again.func, again.args, again.keywords) == (ours.func, ours.args, ours.keywords)
    f = functools.partial(max, 1)
    assert tree.tree_structure(tree.Partial(f, 2)) == tree.tree_structure(tree.Partial(f, 3))


UNFLATTEN = {"b": 1, "a": (2, [3, None])}


@pytest.mark.parametrize("leaves", [[1], [1, 2, 3, 4], (1, 2, 3), range(3)])
def test_unflatten_counts(leaves):
    ours = outcome(tree.tree_unflatten, tree.tree_structure(UNFLATTEN), leaves)
    assert ours == outcome(theirs.tree_unflatten, theirs.tree_structure(UNFLATTEN), leaves)


MATCHES = [
    (UNFLATTEN, UNFLATTEN),
    (UNFLATTEN, {"b": 1, "a": (2, [(3, 4), None])}),
    (UNFLATTEN, {"b": 1, "a": (2, [3, 4])}),
    (UNFLATTEN, {"b": 1, "c": (2, [3, None])}),
    (UNFLATTEN, {"b": 1, "a": (2, (3, None))}),
    (UNFLATTEN, {"b": 1, "a": (2, [3])}),
    (UNFLATTEN, 5),
    (UNFLATTEN, {"b": 1, "a": (2,)}),
    (UNFLATTEN, {"b": 1}),
    (UNFLATTEN, {"b": 1, "a": [2, [3, None]]}),
    (Point(1, 2), (1, 2)),
    ((1, 2), Point(1, 2)),
    (Box(1, 2), Box(1, 3)),
    (Box(1, 2), Pair(1, 3)),
    (Pair(1, 2), Pair(1, 3, "m")),
    (Box(1, 2), 3),
    (Point(1, 2), 3),
    (Point(1, 2), Other(1, 2)),
    (OrderedDict(a=1), {"a": 1}),
    ({"a": 1}, OrderedDict(a=1)),
    (OrderedDict(a=1, b=2), OrderedDict(b=1, a=2)),
    (None, 3),
    (defaultdict(int, a=1), defaultdict(float, a=1)),
    ((1, 2), (1, 2, 3)),
    ([1, 2], (1, 2)),
    ({"a": 1}, {"b": 1}),
    ({"a": 1, "c": (1, 2)}, {"a": 1, "c": (1, 2, 3)}),
    ((1, None), (1, 2)),
    ((1, 2), (1, (2, 3))),
    ({"a": 1, "b": 2}, {"a": 1}),
    ({"a": 1}, {"a": 1, "b": 2}),
    ([1, 2], [1]),
    ({"a": Box(1, 2)}, {"a": Box(1, 3)}),
    ({"a": (1, 2)}, {"a": 5}),
    ([(1,), (2, 3)], [(1,), (2,)]),
    ((), (1,)),
    ({"a": [1, 2], "b": [3, 4]}, {"a": [1], "b": [1]}),
    (1, (2, 3)),
    ([Pair(1, 2)], [Pair(1, 2)]),
    (Keyed(1), Keyed((1, 2))),
    (Static(1), Static(2)),
    (Static(1), Static(1)),
]


@pytest.mark.parametrize("a, b", MATCHES, ids=name)
def test_flatten_up_to(a, b):
    ours = outcome(tree.tree_structure(a).flatten_up_to, b)
    assert ours == outcome(theirs.tree_structure(a).flatten_up_to, b)


@pytest.mark.parametrize("a, b", MATCHES, ids=name)
def test_map_two(a, b):
    pair = lambda x, y: (x, y)
    assert outcome(tree.tree_map, pair, a, b) == outcome(theirs.tree_map, pair, a, b)


@pytest.mark.parametrize("a, b", MATCHES, ids=name)
def test_map_two_with_path(a, b):
    ours = outcome(tree_paths.tree_map_with_path, lambda p, x, y: (tree_paths.keystr(p), x, y), a, b)
    assert ours == outcome(theirs.tree_map_with_path, lambda p, x, y: (theirs.keystr(p), x, y), a, b)


@pytest.mark.parametrize("a, b", MATCHES, ids=name)
def test_prefixes(a, b):
    spread, their_spread = outcome(tree_paths.broadcast_prefix, a, b), outcome(inner.broadcast_prefix, a, b)
    assert sort_keys(repr(spread)) == sort_keys(repr(their_spread))
    spread, their_spread = outcome(tree_paths.tree_broadcast, a, b), outcome(theirs.tree_broadcast, a, b)
    assert sort_keys(repr(spread)) == sort_keys(repr(their_spread))
    ours = [sort_keys(str(e("it"))) for e in tree_paths.prefix_errors(a, b)]
    assert ours == [sort_keys(str(e("it"))) for e in inner.prefix_errors(a, b)]


@pytest.mark.parametrize("a, b", MATCHES, ids=name)
def test_equality_errors(a, b):
    ours, other = list(tree_paths.equality_errors(a, b)), list(inner.equality_errors(a, b))
    assert sort_keys(text(ours)) == sort_keys(text(other))
    assert [x[0] for x in tree_paths.equality_errors(b, a)] == [
        tuple(map(translate, x[0])) for x in inner.equality_errors(b, a)
    ]


def sort_keys(message):
    """JAX names keys in the order of a set."""
    message = re.sub(r"\{[^{}]*\}", lambda m: " ".join(sorted(m[0][1:-1].split())), message)
    before, mark, after = message.replace("\\n", "\n").partition("difference on key sets is\n")
    return before + mark + " ".join(sorted(after.strip("\"')").split()))


def translate(key):
    return getattr(tree_paths, type(key).__name__)(
        *(getattr(key, f) for f in ("idx", "key", "name") if hasattr(key, f))
    )


@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_paths(example):
    ours, structure = tree_paths.tree_flatten_with_path(example)
    other, _ = theirs.tree_flatten_with_path(example)
    assert text(ours) == text(other)
    assert structure == tree.tree_structure(example)
    for (path, _), (their_path, _) in zip(ours, other):
        assert tree_paths.keystr(path) == theirs.keystr(their_path)
        assert tree_paths.keystr(path, simple=True) == theirs.keystr(their_path, simple=True)
        assert tree_paths.keystr(path, simple=True, separator="/") == theirs.keystr(
            their_path, simple=True, separator="/"
        )
    if not isinstance(example, Point):  # JAX gives all children the name of the first
        ours = outcome(tree_paths.flatten_one_level_with_keys, example)
        other = outcome(theirs.flatten_one_level_with_keys, example)
        assert text((list(ours[0]), ours[1])) == text((list(other[0]), other[1]))
    ours, other = outcome(tree.flatten_one_level, example), outcome(theirs.flatten_one_level, example)
    assert text((list(ours[0]), ours[1])) == text((list(other[0]), other[1]))
    assert tree.is_tree_node(type(example)) == theirs.is_tree_node(type(example))
    assert tree.all_leaves([1, example]) == theirs.all_leaves([1, example])


def test_keys_compare_and_hash():
    assert tree_paths.SequenceKey(1) == tree_paths.SequenceKey(1)
    assert tree_paths.SequenceKey(1) != tree_paths.FlattenedIndexKey(1)
    assert hash(tree_paths.DictKey("a")) == hash(tree_paths.DictKey("a"))
    match tree_paths.DictKey("a"):
        case tree_paths.DictKey(key):
            assert key == "a"
    assert tree_paths.keystr(("a", 3), simple=True) == theirs.keystr(("a", 3), simple=True)


PREDICATES = [
    lambda x: isinstance(x, tuple),
    lambda x: x is None,
    lambda x: True,
    lambda x: isinstance(x, Box),
]


@pytest.mark.parametrize("which", range(len(PREDICATES)))
@pytest.mark.parametrize("example", EXAMPLES, ids=name)
def test_is_leaf(example, which):
    predicate = PREDICATES[which]
    assert tree.tree_leaves(example, predicate) == theirs.tree_leaves(example, predicate)
    assert repr(tree.tree_structure(example, predicate)) == repr(theirs.tree_structure(example, predicate))
    assert text(tree_paths.tree_leaves_with_path(example, predicate)) == text(
        theirs.tree_leaves_with_path(example, predicate)
    )
    calls = [0, 0]

    def count(i):
        def counting(x):
            calls[i] += 1
            return predicate(x)

        return counting

    tree.tree_leaves(example, count(0))
    theirs.tree_leaves(example, count(1))
    assert calls[0] == calls[1]


def test_is_leaf_with_path():
    example = [1, (2, {"a": 3})]
    by_depth = lambda path, x: len(path) == 1
    ours = tree_paths.tree_leaves_with_path(example, by_depth, is_leaf_takes_path=True)
    assert text(ours) == text(theirs.tree_leaves_with_path(example, by_depth, is_leaf_takes_path=True))


def test_transpose():
    rows = [(1, 2), (3, 4), (5, 6)]
    for outer, inner_example, value in [
        ([0, 0, 0], (0, 0), rows),
        ([0, 0, 0], (0, 0, 0), rows),
        ([0, 0, 0], None, rows),
        ((0, 0, 0), None, rows),
        ([0, 0, 0], None, [(1, 2), (3, 4), (5, 6, 7)]),
        ({"a": 0, "b": 0}, [0, {"c": 0}], {"a": [1, {"c": 2}], "b": [3, {"c": 4}]}),
    ]:
        results = []
        for library in (tree, theirs):
            inner_def = None if inner_example is None else library.tree_structure(inner_example)
            results.append(outcome(library.tree_transpose, library.tree_structure(outer), inner_def, value))
        assert results[0] == results[1]


def test_reductions():
    add = lambda a, b: f"({a}{b})"
    for example in [[], [1], list("abcdefg"), {"a": 1, "b": (2, 3)}]:
        assert outcome(tree.tree_reduce, add, example) == outcome(theirs.tree_reduce, add, example)
        assert tree.tree_reduce(add, example, "z") == theirs.tree_reduce(add, example, "z")
        ours = outcome(tree.tree_reduce_associative, add, example)
        assert ours == outcome(theirs.tree_reduce_associative, add, example)
        assert tree.tree_reduce_associative(add, example, identity=7) == theirs.tree_reduce_associative(
            add, example, identity=7
        )
    assert tree.tree_all([1, (True, [])]) is True
    assert tree.tree_all([1, (False, [])]) is False


def test_structure_algebra():
    for library in (tree, theirs):
        s = library.tree_structure
        assert repr(s((1, 2)).compose(s([1, 2]))) == "PyTreeDef(([*, *], [*, *]))"
        assert repr(library.treedef_tuple([s(1), s((1, 2))])) == "PyTreeDef((*, (*, *)))"
        assert list(map(repr, library.treedef_children(s((1, (2,)))))) == ["PyTreeDef(*)", "PyTreeDef((*,))"]
        structure = s([1, {"a": (2, None)}])
        walked = structure.walk(lambda children, data: (children, data), lambda x: -x, [1, 2])
        assert walked == ((-1, ((((-2, ((), None)), None),), ["a"])), None)
        assert structure.from_iterable_tree([5, [[6, []]]]) == [5, {"a": (6, None)}]
        with pytest.raises(TypeError):
            library.PyTreeDef()


def test_registration_errors():
    for library in (tree, theirs):
        with pytest.raises(
            ValueError, match="Duplicate custom PyTreeDef type registration for <class 'dict'>"
        ):
            library.register_pytree_node(dict, flatten_box, flatten_box)
        with pytest.raises(TypeError):
            library.register_pytree_node(Box, None, None)


def test_bad_flatten():
    for result in (3, (3, None), ((), None, None)):
        messages = []
        for library in (tree, theirs):
            cls = type("Bad", (), {})
            library.register_pytree_node(cls, lambda x, result=result: result, lambda aux, children: None)
            with pytest.raises(ValueError) as error:
                library.tree_flatten(cls())
            messages.append(str(error.value))
        assert messages[0] == messages[1]


def test_unsortable_keys():
    assert outcome(tree.tree_flatten, {"a": 1, 2: 3}) == outcome(theirs.tree_flatten, {"a": 1, 2: 3})


def test_register_after_use():
    class Late:
        pass

    value = Late()
    assert tree.tree_leaves([value]) == [value]
    tree.register_pytree_node(Late, lambda x: ((1, 2), None), lambda aux, children: Late())
    assert tree.tree_leaves([value]) == [1, 2]


def dataclass_cases():
    @dataclasses.dataclass
    class D:
        x: int
        y: int = 3
        z: int = dataclasses.field(init=False, default=0)

    return [
        (D, ["x"], ["q"]),
        (D, ["x"], []),
        (D, ["x"]),
        (D, ["x", "y"], ["y"]),
        (int,),
        (D, ["x"], [], ["y"]),
        (D, ["x"], ["y"]),
    ]


@pytest.mark.parametrize("case", range(len(dataclass_cases())))
def test_register_dataclass(case):
    results = []
    for library in (tree_paths, theirs):
        cls, *fields = dataclass_cases()[case]
        result = outcome(library.register_dataclass, cls, *fields)
        if result is cls:
            module = tree if library is tree_paths else theirs
            result = repr(module.tree_map(lambda x: x + 1, cls(1, 2))), repr(module.tree_structure(cls(1, 2)))
            again = outcome(library.register_dataclass, cls, *fields)
            assert again[0] == "ValueError"
        results.append(result)
    assert results[0] == results[1]


def test_static_field():
    @tree_paths.register_dataclass
    @dataclasses.dataclass
    class Op:
        x: int
        op: str = tree_paths.static(default="add")

    assert repr(tree.tree_structure(Op(1))) == "PyTreeDef(CustomNode(Op[('add',)], [*]))"


def test_none_as_leaf():
    leaves, structure = registry.none_leaf_registry.flatten({"a": None, "b": (1, None)})
    assert leaves == [None, 1, None]
    assert repr(structure) == "PyTreeDef({'a': *, 'b': (*, *)})"


def random_tree(rng, depth):
    kind = rng.randrange(9) if depth else 0
    child = lambda: random_tree(rng, depth - 1)
    if kind == 1:
        return tuple(child() for _ in range(rng.randrange(6)))
    if kind == 2:
        return [child() for _ in range(rng.randrange(6))]
    if kind == 3:
        return {f"k{rng.randrange(9)}": child() for _ in range(rng.randrange(6))}
    if kind == 4:
        return Point(child(), child())
    if kind == 5:
        return Box(child(), rng.choice(["a", 1, 1.0, (1, "b"), None]))
    if kind == 6:
        return Pair(child(), child(), rng.choice("ab"))
    if kind == 7:
        return None
    if kind == 8:
        return OrderedDict((rng.randrange(5), child()) for _ in range(rng.randrange(4)))
    return rng.random()


@pytest.mark.parametrize("seed", range(60))
def test_random_trees(seed):
    rng = random.Random(seed)
    example, second = random_tree(rng, 4), random_tree(rng, 3)
    test_structure(example)
    test_round_trip(example)
    test_paths(example)
    test_flatten_up_to(example, example)
    test_map_two(example, example)
    test_equality_errors(example, second)
    test_prefixes(second, example)


def test_speed():
    """Bounds with a wide margin: the flattening of arguments is on the path of every call."""
    x = object()
    params = {f"k{i:03d}": x for i in range(100)}

    def time(f):
        return min(timeit.repeat(f, number=200, repeat=5)) / 200

    assert time(lambda: tree.tree_flatten(x)) < 3e-6
    assert time(lambda: tree.tree_flatten((x, x))) < 5e-6
    assert time(lambda: tree.tree_flatten(params)) < 100e-6


@pytest.mark.parametrize("seed", range(40))
def test_match(seed):
    rng = random.Random(seed)
    example, second = random_tree(rng, 4), random_tree(rng, 4)
    leaves, structure = tree.tree_flatten(example)
    for _ in range(6):  # the later rounds go through generated code
        assert registry.match(structure, example) == leaves
        if tree.tree_structure(second) != structure:
            assert registry.match(structure, second) is None
        assert registry.match(structure, [example]) is None
    again = tree.tree_map(lambda x: x, example)
    assert registry.match(structure, again) == leaves


def test_match_tells_structures_apart():
    base = {"a": (1, [2]), "b": {"c": None, "d": Box(3, "x")}}
    structure = tree.tree_structure(base)
    others = [
        {"a": (1, [2]), "b": {"c": None, "d": Box(3, "y")}},
        {"a": (1, [2]), "b": {"c": 1, "d": Box(3, "x")}},
        {"a": (1, (2,)), "b": {"c": None, "d": Box(3, "x")}},
        {"a": (1, [2]), "b": {"c": None, "e": Box(3, "x")}},
        {"a": (1, [2, 3]), "b": {"c": None, "d": Box(3, "x")}},
        {"a": (1, [(2,)]), "b": {"c": None, "d": Box(3, "x")}},
        {"a": (1, [2])},
        3,
    ]
    for _ in range(6):
        assert registry.match(structure, base) == [1, 2, 3]
        for other in others:
            assert registry.match(structure, other) is None
            assert tree.tree_flatten(other) == (theirs.tree_leaves(other), tree.tree_structure(other))
    for order in (base, dict(reversed(base.items()))):
        assert registry.match(structure, order) == [1, 2, 3]


def test_dicts_with_changing_structure():
    for i in range(100):
        example = {"a": [i] * (i % 5), "b": {"c": (i,) * (i % 3)}}
        leaves, structure = tree.tree_flatten(example)
        assert leaves == theirs.tree_leaves(example)
        assert repr(structure) == repr(theirs.tree_structure(example))


def test_structures_in_no_use_go_away():
    class Label:
        pass

    label = Label()
    alive = weakref.ref(label)
    for _ in range(10):
        structure = tree.tree_structure({"x": Box(1, label)})
        assert registry.match(structure, {"x": Box(1, label)}) == [1]
        assert structure.unflatten([1])["x"].label is label
    del structure, label
    gc.collect()
    assert alive() is None


class TestDepth:
    """Trees deeper than Python's stack."""

    @staticmethod
    def nested(wrap, leaf, depth):
        for _ in range(depth):
            leaf = wrap(leaf)
        return leaf

    WRAPS = {
        "list": lambda x: [x],
        "tuple": lambda x: (0, x),
        "dict": lambda x: {"b": x, "a": None},
        "named": lambda x: Point(x, 1),
        "ordered": lambda x: OrderedDict(k=x),
    }

    @pytest.mark.parametrize("wrap", WRAPS.values(), ids=WRAPS)
    @pytest.mark.parametrize("depth", [20, 30, 500])
    def test_structures_are_as_jax_s(self, wrap, depth):
        one, two = self.nested(wrap, 1, depth), self.nested(wrap, (1, 2), depth)
        leaves, structure = tree.tree_flatten(two)
        their_leaves, theirs_structure = theirs.tree_flatten(two)
        assert leaves == their_leaves
        assert repr(structure) == repr(theirs_structure)
        assert tree.tree_flatten(two, is_leaf=lambda x: type(x) is tuple and x == (1, 2))[0] == theirs.tree_leaves(
            two, is_leaf=lambda x: type(x) is tuple and x == (1, 2)
        )
        prefix = tree.tree_structure(one)
        assert prefix != structure
        assert prefix == tree.tree_structure(self.nested(wrap, 2, depth))
        assert hash(prefix) == hash(tree.tree_structure(self.nested(wrap, 2, depth)))
        assert prefix.flatten_up_to(two) == theirs.tree_structure(one).flatten_up_to(two)
        assert repr(pickle.loads(pickle.dumps(structure))) == repr(theirs_structure)
        assert repr(prefix.compose(tree.tree_structure((1, 2)))) == repr(
            theirs.tree_structure(one).compose(theirs.tree_structure((1, 2)))
        )
        for _ in range(6):  # some calls later there is generated code, for what is not too deep
            built = tree.tree_map(lambda a, b: (a, b), two, two)
            assert theirs.tree_leaves(built) == [x for x in leaves for _ in range(2)]
        keys = [k for k, _ in tree_paths.tree_flatten_with_path(two)[0]]
        assert list(map(len, keys)) == [len(k) for k, _ in theirs.tree_flatten_with_path(two)[0]]
        assert tree_paths.broadcast_prefix(one, two) == leaves_of_prefix(one, two)
        with pytest.raises(ValueError, match="pytree structure error"):
            tree_paths.broadcast_prefix(two, one)
        assert len(list(tree_paths.equality_errors(one, two))) == 1


def leaves_of_prefix(prefix, full):
    return inner.broadcast_prefix(prefix, full)


def test_map_looks_no_further_than_the_first_tree():
    """What stands at its leaves may be a node that holds itself."""
    endless = [1]
    endless.append(endless)
    for _ in range(6):  # the first times, and once the structure is known to come again
        for package in (tree, theirs):
            found = []
            package.tree_map(lambda x, y, found=found: found.append(y), {"a": 0, "b": (1,)}, {"a": endless, "b": (2,)})
            assert found[0] is endless and found[1:] == [2]
            found = package.tree_map(lambda x, y: x is endless and y is endless, {"a": endless}, {"a": endless},
                                     is_leaf=lambda x: x is endless)
            assert found == {"a": True}
