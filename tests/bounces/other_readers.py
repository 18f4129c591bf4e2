#!/usr/bin/python3
"""other_readers.py DIRECTORY: what libsisimai-perl and python3-flufl.bounce, each alone, read of the mails that
measure_bounces reads: recipients found, and how many are called hard, rightly. A permanent failure counts as hard for
flufl.bounce, which knows no reasons.
"""

import csv
import email
import json
import subprocess
import sys
from collections import defaultdict

from flufl.bounce import all_failures

DIRECTORY = sys.argv[1]
PERL = r'''
use Sisimai; use JSON::PP;
print JSON::PP->new->ascii->encode([map { $_->reason =~ /^(userunknown|hostunknown|hasmoved|notaccept)$/ && $_->deliverystatus !~ /^4/ ? 1 : 0 }
    @{ Sisimai->make($_, delivered => 1) || [] }]), "\n" for @ARGV;
'''


def expected():
    rows = defaultdict(list)
    with open(f'{DIRECTORY}/expected.csv', encoding='utf-8') as file:
        for row in csv.DictReader(file):
            rows[row['file']].append(row['hard'] == 'true')
    return rows


def read_by_sisimai(names):
    paths = [f'{DIRECTORY}/{name}' for name in names]
    lines = subprocess.run(['perl', '-e', PERL, *paths], capture_output=True, text=True, check=True).stdout.splitlines()
    return [json.loads(line) for line in lines]


def read_by_flufl(names):
    for name in names:
        with open(f'{DIRECTORY}/{name}', 'rb') as file:
            temporary, permanent = all_failures(email.message_from_binary_file(file))
        yield [True] * len(permanent) + [False] * len(temporary)


def print_counts(title, wanted, read):
    found = called = right = 0
    for hard, seen in zip(wanted, read):
        pairs = list(zip(hard, seen))
        found += len(pairs)
        called += sum(1 for _, is_hard in pairs if is_hard)
        right += sum(1 for is_wanted, is_hard in pairs if is_wanted and is_hard)
    recipients = sum(len(hard) for hard in wanted)
    print(f'{title}: found {found} of {recipients}; hard, rightly {right} of {called}; '
          f'found hard {right} of {sum(sum(hard) for hard in wanted)}')


def main():
    rows = expected()
    print_counts('libsisimai-perl', list(rows.values()), read_by_sisimai(rows))
    print_counts('flufl.bounce', list(rows.values()), read_by_flufl(rows))


main()
