#!/usr/bin/python3
"""links_test.py: each link of a document to another one, or to a heading, leads somewhere; so do the documents that messages of the
program and its files name."""

import os
import re
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
CODE = re.compile(r'^ *```.*?^ *```$', re.MULTILINE | re.DOTALL)
LINK = re.compile(r'\]\(([^)\s]+)\)')
NAMED = re.compile(r'\b(docs/[a-z-]+\.md)(#[\w-]+)?')


def read(path):
    with open(os.path.join(ROOT, path), encoding='utf-8', errors='replace') as file:
        return file.read()


def files_below(*places, ending=''):
    """Without what a build, git or npm has made."""
    for place in places:
        if os.path.isfile(os.path.join(ROOT, place)):
            yield place
        for directory, names, files in os.walk(os.path.join(ROOT, place)):
            names[:] = [name for name in names if name not in ('build', 'node_modules') and not name.startswith('.')]
            yield from (os.path.relpath(os.path.join(directory, file), ROOT) for file in files if file.endswith(ending))


def anchors(path):
    """The anchors that GitHub makes of the headings."""
    found = set()
    for heading in re.findall(r'^#+ (.*)$', CODE.sub('', read(path)), re.MULTILINE):
        name = re.sub(r'[^\w\- ]', '', re.sub(r'\]\([^)]*\)', '', heading).lower()).replace(' ', '-')
        number = 0
        while (anchor := name if number == 0 else f'{name}-{number}') in found:
            number += 1
        found.add(anchor)
    return found


class LinksTest(unittest.TestCase):
    def check(self, path, target, anchor):
        self.assertTrue(os.path.exists(os.path.join(ROOT, target)), f'{path} leads to {target}, which is not there')
        if anchor:
            self.assertIn(anchor, anchors(target), f'{path} leads to a heading that {target} does not have')

    def test_each_link_leads_somewhere(self):
        checked = 0
        for path in files_below('', ending='.md'):
            for link in LINK.findall(CODE.sub('', read(path))):
                if re.match(r'[a-z]+:', link):
                    continue
                target, _, anchor = link.partition('#')
                target = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
                with self.subTest(path=path, link=link):
                    self.check(path, target, anchor)
                checked += 1
        self.assertGreater(checked, 100)

    def test_each_document_that_a_message_names_is_there(self):
        checked = 0
        for path in files_below('core', 'cmd', 'scripts', 'packaging', 'migrations', 'mailroom.yaml.example'):
            for target, anchor in NAMED.findall(read(path)):
                with self.subTest(path=path, target=target):
                    self.check(path, target, anchor.lstrip('#'))
                checked += 1
        self.assertGreater(checked, 30)


if __name__ == '__main__':
    unittest.main()
