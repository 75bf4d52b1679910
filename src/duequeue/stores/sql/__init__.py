"""What the SQL stores share: operations, the query loader, migrations."""
