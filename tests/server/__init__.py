"""The service over real connections: every route, its limits, its access and its end."""
