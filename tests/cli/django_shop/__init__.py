"""A Django project whose handlers run in a worker."""
