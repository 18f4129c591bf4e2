"""The settings of the shop. PGDATABASE and the other variables of libpq name the database, MAILROOM_SECRET_KEY_FILE the key."""

import os
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent

# Your own shop reads it from a file, and turns DEBUG off.
SECRET_KEY = 'an example has no secrets'
DEBUG = True
ALLOWED_HOSTS = ['127.0.0.1']
ROOT_URLCONF = 'shop.urls'
INSTALLED_APPS = ['django.contrib.auth', 'django.contrib.contenttypes', 'django.contrib.sessions', 'shop']
MIDDLEWARE = [
    'django.contrib.sessions.middleware.SessionMiddleware',
    'django.middleware.csrf.CsrfViewMiddleware',
    'django.contrib.auth.middleware.AuthenticationMiddleware',
]
TEMPLATES = [{
    'BACKEND': 'django.template.backends.django.DjangoTemplates',
    'DIRS': [BASE_DIR / 'shop' / 'pages'],
    'OPTIONS': {'context_processors': ['django.template.context_processors.request']},
}]
DATABASES = {'default': {
    'ENGINE': 'django.db.backends.postgresql',
    'NAME': os.environ.get('PGDATABASE', 'shop'),
    'ATOMIC_REQUESTS': True,  # so a request that fails mails nobody
}}
AUTH_USER_MODEL = 'shop.User'
DEFAULT_AUTO_FIELD = 'django.db.models.BigAutoField'
USE_TZ = True

EMAIL_BACKEND = 'shop.mailroom_backend.MailroomBackend'
DEFAULT_FROM_EMAIL = 'The shop <no-reply@shop.example>'
MAILROOM_KEY_FILE = os.environ.get('MAILROOM_SECRET_KEY_FILE', BASE_DIR / 'mailroom.key')
