"""A module that cannot be imported."""

raise LookupError("the settings are missing")
