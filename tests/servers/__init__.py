"""What stands around the store or befalls it: poolers, roles, standbys, crashes, power cuts."""
