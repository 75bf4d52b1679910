"""What developers of DueQueue run."""
