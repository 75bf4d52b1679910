"""The stores behind the port, one folder or file each."""
