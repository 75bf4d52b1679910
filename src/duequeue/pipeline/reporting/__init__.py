"""The report job, which writes a page about the archive and the database."""
