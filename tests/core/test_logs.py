"""`jax_debug_log_modules` and `jax_logging_level`: which loggers speak, and how often, as under JAX."""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys

import jax as oracle
import pytest

import styrax


@pytest.fixture
def heard():
    """What handlers of the library's own logger get."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logging.getLogger("jax").addHandler(handler)
    yield stream
    logging.getLogger("jax").removeHandler(handler)


@pytest.mark.parametrize("setting", [{}, {"jax_debug_log_modules": "jax"}, {"jax_debug_log_modules": ""},
                                     {"jax_debug_log_modules": "jax._src.dispatch"}, {"jax_logging_level": "DEBUG"},
                                     {"jax_debug_log_modules": "jax._src.interpreters.pxla,jax._src.dispatch"},
                                     {"jax_logging_level": "INFO"}, {"jax_logging_level": None},
                                     {"jax_logging_level": "INFO", "jax_debug_log_modules": "jax._src.dispatch"}])
def test_who_is_heard(heard, capfd, setting):
    def program(package):
        before = {name: package.config.values[name] for name in setting}
        for name, value in setting.items():
            package.config.update(name, value)
        try:
            heard.truncate(0)
            package.jit(lambda x: x + 1)(1)
            return _counts(heard.getvalue())
        finally:
            for name, value in before.items():
                package.config.update(name, value)

    expected = program(oracle)
    capfd.readouterr()
    assert program(styrax) == expected == _counts(capfd.readouterr().err)


def _counts(text):
    return text.count("Finished tracing <lambda> for jit"), text.count("Compiling jit(<lambda>)")


@pytest.mark.parametrize("package", [oracle, styrax])
def test_levels_that_do_not_exist(package):
    with pytest.raises(ValueError, match="new enum value must be None or in"):
        package.config.update("jax_logging_level", "LOUD")


def test_levels_from_the_environment():
    program = """
import sys
import styrax
styrax.jit(lambda x: x)(1)
styrax.config.update("jax_logging_level", None)
sys.stderr.write("-" * 9)
styrax.jit(lambda x: x)(1)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env={
        **os.environ, "JAX_LOGGING_LEVEL": "DEBUG", "JAX_DEBUG_LOG_MODULES": "jax._src.dispatch,jax._src.compiler"})
    loud, _, silent = run.stderr.partition("-" * 9)
    assert loud.count("Finished tracing <lambda> for jit") == 1 and loud.startswith("DEBUG:")
    assert "Compiling jit(" in loud and "Compiling" not in silent


def test_nothing_is_imported_for_silence():
    program = "import sys, styrax.core.settings.config; print('logging' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
