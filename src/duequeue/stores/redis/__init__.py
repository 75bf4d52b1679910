"""The store on Redis or Valkey: one script for each operation."""
