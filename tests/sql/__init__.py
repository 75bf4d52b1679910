"""What the SQL stores do in SQL: catalogues, plans, round trips, schema, errors."""
