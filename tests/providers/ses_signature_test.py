#!/usr/bin/python3
"""ses_signature_test.py SIGN_REQUESTS: compares the signatures of random requests with those that botocore makes of them."""

import datetime
import json
import random
import string
import subprocess
import sys
import unittest
from unittest import mock

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

SIGN_REQUESTS = sys.argv[1]
SEED = random.randrange(2**32)
CHANCE = random.Random(SEED)
HOSTS = ['email.eu-west-1.amazonaws.com', '127.0.0.1:8005', 'vpce-1.email.eu-west-1.vpce.amazonaws.com:8443']
PATHS = ['/', '/v2/email/account', '/v2/email/outbound-emails', '/v2/email/identities/no-reply%40app.example',
         '/v2/email/identities/b%C3%BCcher.example', '/a~b/c_d/e.f/g-h']
ALPHABET = string.ascii_letters + string.digits + '/+='


def text_of(alphabet, least, most):
    return ''.join(CHANCE.choice(alphabet) for _ in range(CHANCE.randint(least, most)))


def random_request():
    method = CHANCE.choice(['GET', 'POST', 'PUT'])
    has_body = method != 'GET'
    return {
        'method': method,
        'host': CHANCE.choice(HOSTS),
        'path': CHANCE.choice(PATHS),
        'content_type': CHANCE.choice(['application/json', 'text/plain;  charset=utf-8 ']) if has_body else '',
        'target': CHANCE.choice(['', 'AmazonSQS.ReceiveMessage']) if has_body else '',
        'body': text_of(string.printable + 'äöü€', 0, 5000) if has_body else '',
        'key_id': text_of(string.ascii_uppercase + string.digits, 16, 128),
        'secret': text_of(ALPHABET, 1, 100),
        'token': text_of(ALPHABET, 0, 1200) if CHANCE.random() < 0.5 else '',
        'region': CHANCE.choice(['eu-west-1', 'us-gov-west-1', 'cn-north-1']),
        'service': CHANCE.choice(['ses', 'iam', 'sqs']),
        'now': CHANCE.randrange(0, 4_000_000_000),
    }


def signed_by_botocore(asked):
    headers = {'Content-Type': asked['content_type']} if asked['content_type'] else {}
    if asked['target']:
        headers['X-Amz-Target'] = asked['target']
    request = AWSRequest(method=asked['method'], url=f'https://{asked["host"]}{asked["path"]}', headers=headers,
                         data=asked['body'].encode())
    moment = datetime.datetime.fromtimestamp(asked['now'], datetime.timezone.utc).replace(tzinfo=None)
    with mock.patch('botocore.auth.datetime') as clock:
        clock.datetime.utcnow.return_value = moment
        credentials = Credentials(asked['key_id'], asked['secret'], asked['token'] or None)
        SigV4Auth(credentials, asked['service'], asked['region']).add_auth(request)
    return request.headers['Authorization']


class SignatureTest(unittest.TestCase):
    def test_each_signature_is_that_of_botocore(self):
        requests = [random_request() for _ in range(400)]
        lines = ''.join(json.dumps(asked) + '\n' for asked in requests)
        ours = subprocess.run([SIGN_REQUESTS], input=lines, check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines()
        self.assertEqual(len(ours), len(requests))
        for asked, signed in zip(requests, ours):
            self.assertEqual(signed, signed_by_botocore(asked), f'seed {SEED}: {asked}')


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
