"""Errors inside programs as values."""

from __future__ import annotations

from typing import TypeVar

from ...transforms.checkify import (
    Error,
    ErrorCategory,
    ErrorEffect,
    FailedCheckError,
    JaxException,
    JaxRuntimeError,
    all_checks,
    automatic_checks,
    check,
    check_error,
    checkify,
    debug_check,
    div_checks,
    float_checks,
    index_checks,
    init_error,
    nan_checks,
    user_checks,
)

Out = TypeVar("Out")

__all__ = [
    "Error", "ErrorCategory", "ErrorEffect", "FailedCheckError", "JaxException", "JaxRuntimeError", "Out", "all_checks",
    "automatic_checks", "check", "check_error", "checkify", "debug_check", "div_checks", "float_checks", "index_checks",
    "init_error", "nan_checks", "user_checks",
]
