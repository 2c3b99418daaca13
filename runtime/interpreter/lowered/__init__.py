"""How the parts of a statement are lowered (``runtime/interpreter/lowering.py``)."""
