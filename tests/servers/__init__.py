"""What surrounds the store and can happen to it: poolers, roles, standbys, crashes, power cuts."""
