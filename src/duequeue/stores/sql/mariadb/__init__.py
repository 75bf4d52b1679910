"""The store on MariaDB and MySQL."""
