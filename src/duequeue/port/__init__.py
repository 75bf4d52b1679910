"""What a store must be able to do; the author of a store needs to read only this package."""
