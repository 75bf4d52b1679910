"""The settings of the project."""

import os

SECRET_KEY = "not a secret"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth"]
DATABASES = {
    "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ.get("SHOP_FILE", "")}
}
USE_TZ = True
