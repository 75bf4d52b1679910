"""The PostgreSQL store, on psycopg 3, blocking and awaiting."""
