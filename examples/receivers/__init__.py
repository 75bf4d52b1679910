"""Receivers of callbacks that verify the signature, in Python, Node.js and Go."""
