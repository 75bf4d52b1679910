"""The shape of the package: names, faces, errors, layers."""
