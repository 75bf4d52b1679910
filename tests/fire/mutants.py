def apply(name: str) -> None:
    raise LookupError(name)
