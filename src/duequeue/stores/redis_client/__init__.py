"""How Redis is reached, by the store on it and by others that send wake-ups through it."""
