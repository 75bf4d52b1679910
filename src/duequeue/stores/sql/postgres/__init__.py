"""The PostgreSQL store: psycopg 3, blocking and awaiting."""
