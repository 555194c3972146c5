"""Flags: names, values, scopes and errors as JAX's."""

import os
import subprocess
import sys
import threading
import types

import jax
import pytest

from styrax.core.settings import config as config_module
from styrax.core.settings import flags
from styrax.core.settings.config import config

DEFAULTS = dict(jax.config.values)  # before tests set any
OWN = {name for name in config.values if name.startswith("styrax_")}


def test_same_flags_as_jax():
    assert set(config.values) - OWN == set(jax.config.values)


@pytest.mark.parametrize("name", sorted(DEFAULTS))
def test_same_default(name):
    if name.upper() in os.environ:
        pytest.skip("set in the environment")
    ours, theirs = config_module.states[name]._default, DEFAULTS[name]
    if name == "jax_enable_x64" or isinstance(theirs, bool):
        assert ours == theirs
    else:
        assert getattr(ours, "value", ours) == getattr(theirs, "value", theirs)


def test_update_and_context():
    assert config.jax_enable_x64 is False
    with config_module.enable_x64(True):
        assert config.jax_enable_x64 is True
        assert config.read("jax_enable_x64") is True
        with config_module.enable_x64(False):
            assert config.jax_enable_x64 is False
        assert config.jax_enable_x64 is True
    assert config.jax_enable_x64 is False
    config.update("jax_enable_x64", True)
    try:
        assert config.jax_enable_x64 is True
    finally:
        config.update("jax_enable_x64", False)


def test_context_ends_on_error():
    with pytest.raises(KeyError), config_module.debug_nans():
        raise KeyError
    assert config.jax_debug_nans is False


def test_decorator():
    @config_module.enable_x64(True)
    def read():
        return config.jax_enable_x64

    assert read() is True
    assert config.jax_enable_x64 is False


def test_local_to_thread():
    seen = []
    with config_module.enable_x64(True):
        thread = threading.Thread(target=lambda: seen.append(config.jax_enable_x64))
        thread.start()
        thread.join()
    assert seen == [False]


def test_global_reaches_threads():
    seen = []
    config.update("jax_default_matmul_precision", "highest")
    try:
        thread = threading.Thread(target=lambda: seen.append(config.jax_default_matmul_precision))
        thread.start()
        thread.join()
    finally:
        config.update("jax_default_matmul_precision", None)
    assert seen == ["highest"]


def test_trace_context_is_interned_and_follows_flags():
    before = config.trace_context()
    assert config.trace_context() is before
    with config_module.enable_x64(True):
        inside = config.trace_context()
        assert inside != before
    assert config.trace_context() is before
    config.update("jax_default_matmul_precision", "float32")
    assert config.trace_context() != before
    config.update("jax_default_matmul_precision", None)
    assert config.trace_context() is before
    with config_module.log_compiles(True):
        assert config.trace_context() is before


@pytest.mark.parametrize(
    "name, value",
    [
        ("jax_numpy_rank_promotion", "foo"),
        ("jax_numpy_dtype_promotion", "foo"),
        ("jax_default_prng_impl", "foo"),
        ("jax_default_matmul_precision", "foo"),
        ("jax_default_matmul_precision", 3),
        ("jax_default_device", 3),
    ],
)
def test_bad_values(name, value):
    with pytest.raises(ValueError) as theirs:
        jax.config.update(name, value)
    with pytest.raises(ValueError) as ours:
        config.update(name, value)
    assert str(ours.value) == str(theirs.value)


def test_enum_flags_take_strings():
    with config_module.numpy_dtype_promotion("strict"):
        assert config.jax_numpy_dtype_promotion is flags.NumpyDtypePromotion.STRICT
        assert config.jax_numpy_dtype_promotion == "strict"
    with config_module.explicit_x64_dtypes("error"):
        assert config.jax_explicit_x64_dtypes is flags.ExplicitX64Mode.ERROR


def test_unknown_flag():
    with pytest.raises(AttributeError, match="Unrecognized config option: jax_foo"):
        config.update("jax_foo", 1)
    with pytest.raises(AttributeError, match="did you mean jax_enable_x64"):
        config.jax_enable_x46  # noqa: B018
    with pytest.raises(AttributeError):
        config.jax_enable_x64 = True


def test_needs_argument():
    with pytest.raises(TypeError, match="requires an argument"):
        config_module.default_matmul_precision()
    with pytest.raises(TypeError, match=r"State\.value"):
        bool(config_module.enable_x64)


def test_transfer_guard_sets_three():
    with config_module.transfer_guard("disallow"):
        assert config.jax_transfer_guard_host_to_device == "disallow"
        assert config.jax_transfer_guard_device_to_host == "disallow"
    assert config.jax_transfer_guard_host_to_device is None


def test_user_context():
    context = config_module.make_user_context(3)
    before = config.trace_context()
    with context(4):
        assert context.value == 4
        assert config.trace_context() != before
    assert context.value == 3
    assert config.trace_context() == before


def test_hooks_see_changes():
    seen = []
    state = flags.State("test_hooked", 1)
    state.add_hook(seen.append)
    state.set_global(2)
    with state(3):
        pass
    assert seen == [1, 2, 3, 2]


def _run(code, **environment):
    environment = {**os.environ, "PYTHONPATH": "src", **environment}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)


def test_environment():
    code = "from styrax.core.settings.config import config as c; "
    code += "print(c.jax_enable_x64, c.jax_numpy_rank_promotion, c.debug)"
    result = _run(code, JAX_ENABLE_X64="1", JAX_NUMPY_RANK_PROMOTION="raise", STYRAX_DEBUG="llvm")
    assert result.stdout == "True raise frozenset({'llvm'})\n"


def test_bad_environment():
    code = "import styrax.core.settings.config"
    stderr = _run(code, JAX_ENABLE_X64="maybe").stderr
    assert "invalid truth value 'maybe' for environment 'JAX_ENABLE_X64'" in stderr
    stderr = _run(code, JAX_NUMPY_RANK_PROMOTION="foo").stderr
    assert 'Invalid value "foo" for JAX flag jax_numpy_rank_promotion' in stderr


def test_command_line(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["prog", "--jax_enable_x64", "data", "--jax_numpy_rank_promotion=warn"])
    try:
        config.parse_flags_with_absl()
        assert sys.argv == ["prog", "data"]
        assert config.jax_enable_x64 is True
        assert config.jax_numpy_rank_promotion == "warn"
    finally:
        config.update("jax_enable_x64", False)
        config.update("jax_numpy_rank_promotion", "allow")


class FlagsOfAbsl:
    def __init__(self, parsed):
        self.parsed, self.calls = parsed, []

    def is_parsed(self):
        return self.parsed

    def __call__(self, arguments):
        self.parsed = True
        self.calls.append(arguments)


@pytest.mark.parametrize("parsed, calls", [(False, [["prog"]]), (True, [])])
def test_flags_of_others_have_their_defaults(parsed, calls, monkeypatch):
    others = FlagsOfAbsl(parsed)
    for name in ("absl", "absl.flags"):
        module = types.ModuleType(name)
        module.flags, module.FLAGS = module, others
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(sys, "argv", ["prog", "--other=3"])
    config.config_with_absl()
    assert others.parsed is parsed
    config.parse_flags_with_absl()
    assert others.calls == calls and sys.argv == ["prog", "--other=3"]


def test_cache_directory(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    with config_module.states["styrax_cache_dir"](None), config_module.states["jax_compilation_cache_dir"](None):
        assert config_module.cache_directory() == "/x/styrax"
    with config_module.states["styrax_cache_dir"]("/y"):
        assert config_module.cache_directory() == "/y"
    with config_module.states["jax_enable_compilation_cache"](False):
        assert config_module.cache_directory() is None
