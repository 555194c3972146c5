"""Operations that rearrange, join, pad and fill."""
