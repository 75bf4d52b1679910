"""How fast it could be at all, and how fast the algorithm was that this queue began with."""
