"""Operations by their dialects."""

from __future__ import annotations
