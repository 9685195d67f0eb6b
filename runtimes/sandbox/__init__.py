"""Single-use, hardened containers behind one small contract."""
