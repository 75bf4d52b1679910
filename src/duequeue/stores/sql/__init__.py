"""What the SQL stores share: the operations, the query loader and the migrations."""
