#!/usr/bin/python3
"""make_nats_credentials.py DIRECTORY: makes an operator, two accounts and two users of NATS with keys of their own, as
`nsc` does. Writes DIRECTORY/operator.conf, to be included in a server's configuration, DIRECTORY/user.creds, and
DIRECTORY/stranger.creds of a user whose account the servers do not know."""
import base64
import json
import os
import subprocess
import sys
import time

OPERATOR, ACCOUNT, USER, SEED = 14 << 3, 0, 20 << 3, 18 << 3
# What precedes the 32 bytes of an ed25519 private key in PKCS #8.
PKCS8 = bytes.fromhex('302e020100300506032b657004220420')
LIMITS = {'subs': -1, 'data': -1, 'payload': -1, 'imports': -1, 'exports': -1, 'wildcards': True, 'conn': -1, 'leaf': -1}
STORAGE = {'mem_storage': -1, 'disk_storage': -1, 'streams': -1, 'consumer': -1}


def crc16(data):
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def base32(data):
    return base64.b32encode(data + crc16(data).to_bytes(2, 'little')).decode().rstrip('=')


def base64url(data):
    return base64.urlsafe_b64encode(data).decode().rstrip('=')


class Key:
    def __init__(self, kind):
        self.secret = os.urandom(32)
        self.file = f'{directory}/key.der'
        public = self.openssl(['pkey', '-inform', 'DER', '-pubout', '-outform', 'DER'])[-32:]
        self.public = base32(bytes([kind]) + public)
        self.seed = base32(bytes([SEED | kind >> 5, (kind & 31) << 3]) + self.secret)

    def openssl(self, words):
        with open(self.file, 'wb') as file:
            file.write(PKCS8 + self.secret)
        key = ['-inkey'] if words[0] == 'pkeyutl' else ['-in']
        return subprocess.run(['openssl', *words, *key, self.file], check=True, capture_output=True).stdout

    def sign(self, text):
        with open(f'{directory}/text', 'w', encoding='ascii') as file:
            file.write(text)
        return self.openssl(['pkeyutl', '-sign', '-rawin', '-keyform', 'DER', '-in', f'{directory}/text'])


def token(issuer, subject, name, claims):
    now = int(time.time())
    body = {'jti': base64url(os.urandom(24)), 'iat': now, 'iss': issuer.public, 'name': name, 'sub': subject.public,
            'nats': {**claims, 'version': 2}}
    parts = [{'typ': 'JWT', 'alg': 'ed25519-nkey'}, body]
    text = '.'.join(base64url(json.dumps(part, separators=(',', ':')).encode()) for part in parts)
    return f'{text}.{base64url(issuer.sign(text))}'


def account(name, key, limits):
    return token(operator, key, name, {'type': 'account', 'limits': limits, 'default_permissions': {'pub': {}, 'sub': {}}})


def write_user(path, owner):
    key = Key(USER)
    claims = {'type': 'user', 'pub': {}, 'sub': {}, 'subs': -1, 'data': -1, 'payload': -1}
    jwt = token(owner, key, 'mailroom', claims)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), 'w', encoding='ascii') as file:
        file.write(f'-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n'
                   f'-----BEGIN USER NKEY SEED-----\n{key.seed}\n------END USER NKEY SEED------\n')


directory = sys.argv[1]
operator, system, owner = Key(OPERATOR), Key(ACCOUNT), Key(ACCOUNT)
with open(f'{directory}/operator.conf', 'w', encoding='ascii') as settings:
    settings.write(f"""operator: {token(operator, operator, 'test', {'type': 'operator'})}
system_account: {system.public}
resolver: MEMORY
resolver_preload: {{
  {system.public}: {account('system', system, LIMITS)}
  {owner.public}: {account('mailroom', owner, LIMITS | STORAGE)}
}}
""")
write_user(f'{directory}/user.creds', owner)
write_user(f'{directory}/stranger.creds', Key(ACCOUNT))
for name in ('key.der', 'text'):
    os.remove(f'{directory}/{name}')
