"""Plays the requests of tests/http/cases.json to a server that speaks Resend's API, and says what of its answers is not as promised.

A case has a request, what its answer must be (`expect`), and what later cases use of it (`save`). In texts, {{name}} stands for a variable or
a saved value, {{run}} for text of this run, {{iso:60}} for the time in a minute.
"""

import datetime
import http.client
import json
import re
import secrets
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

ANSWER_WITHIN = 20
UUID = re.compile(r'[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}')
TIME = re.compile(r'\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d(:?\d\d)?)')
MISSING = object()


@dataclass
class Reply:
    """`value` is MISSING where the body is no JSON."""
    status: int
    headers: http.client.HTTPMessage
    text: str
    value: object = MISSING

    def member(self, name):
        return self.value.get(name, MISSING) if isinstance(self.value, dict) else MISSING


@dataclass
class Player:
    """One server, a key for it, and what its answers gave to later requests."""
    port: int
    key: str
    names: dict
    run: str = field(default_factory=lambda: secrets.token_hex(4))

    def play(self, case):
        """The replies; several if the request is sent several times at once."""
        with ThreadPoolExecutor(case.get('parallel', 1)) as senders:
            replies = list(senders.map(lambda _: self.ask(case), range(case.get('parallel', 1))))
        for name, place in case.get('save', {}).items():
            saved = at(replies[0].value, place)
            if saved is not MISSING:
                self.names[name] = saved
        return replies

    def ask(self, case):
        headers = self.made(case.get('headers', {}))
        auth = case.get('auth', f'Bearer {self.key}')
        if auth is not None:
            headers['authorization'] = self.filled(auth)
        body = case.get('raw')
        if 'json' in case:
            body = json.dumps(self.made(case['json']), ensure_ascii=False)
            headers.setdefault('content-type', 'application/json')
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=ANSWER_WITHIN)
        try:
            connection.request(case['method'], self.filled(case['path']), body.encode() if body is not None else None, headers)
            answer = connection.getresponse()
            reply = Reply(answer.status, answer.headers, answer.read().decode())
        finally:
            connection.close()
        try:
            reply.value = json.loads(reply.text)
        except ValueError:
            pass
        return reply

    def filled(self, text):
        def value(match):
            name = match[1]
            if name == 'run':
                return self.run
            if name.startswith('iso:'):
                then = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=int(name[4:]))
                return then.isoformat(timespec='milliseconds').replace('+00:00', 'Z')
            return str(self.names.get(name, match[0]))
        return re.sub(r'\{\{([^}]+)\}\}', value, text)

    def made(self, value):
        """A value of the file, with its texts filled, and its $string and $repeat written out."""
        if isinstance(value, str):
            return self.filled(value)
        if isinstance(value, list):
            return [self.made(each) for each in value]
        if not isinstance(value, dict):
            return value
        if '$string' in value:
            return value['$string']['value'] * value['$string']['times']
        if '$repeat' in value:
            several = value['$repeat']
            return [Player(self.port, self.key, {**self.names, 'index': str(i)}, self.run).made(several['value']) for i in range(several['times'])]
        return {name: self.made(each) for name, each in value.items()}

    def faults(self, case, replies, error_names):
        """What of the replies is not as every answer must be, or not as the case expects."""
        expect = case['expect']
        found = [fault for reply in replies for fault in faults_of_any(reply, error_names)]
        statuses = {reply.status for reply in replies}
        if statuses != {expect['status']}:
            return found + [f"status {sorted(statuses)}, not {expect['status']}: {replies[0].text[:200]}"]
        first = replies[0]
        if 'name' in expect and first.member('name') != expect['name']:
            found.append(f"name {first.member('name')}, not {expect['name']}")
        if expect.get('mentions', '') not in str(first.member('message')):
            found.append(f"the message does not name {expect['mentions']}: {first.member('message')}")
        if 'ids' in expect and len({reply.member('id') for reply in replies}) != expect['ids']:
            found.append(f"not {expect['ids']} ids in {len(replies)} answers")
        return found + list(self.mismatches(first.value, expect.get('body', {}), 'answer'))

    def mismatches(self, value, wanted, place):
        """Where a value is not as `wanted`: an object has these members and perhaps others; [item] or [item, {"$len": n}] is a list of such
        items; a text is one of `fits`, after '?' for what may be missing."""
        if isinstance(wanted, dict):
            if isinstance(value, (dict, list)):
                for name, each in wanted.items():
                    yield from self.mismatches(at(value, name), each, f'{place}.{name}')
            else:
                yield f'{place} is no object'
        elif isinstance(wanted, list):
            if not isinstance(value, list):
                yield f'{place} is no list'
                return
            if len(wanted) > 1 and len(value) != wanted[1]['$len']:
                yield f"{place} has {len(value)} items, not {wanted[1]['$len']}"
            for number, each in enumerate(value):
                yield from self.mismatches(each, wanted[0], f'{place}.{number}')
        elif not (wanted.startswith('?') and value is MISSING) and not self.fits(value, wanted.removeprefix('?')):
            yield f"{place} is {'missing' if value is MISSING else json.dumps(value)[:80]}, not {wanted}"

    def fits(self, value, wanted):
        if value is MISSING or wanted == 'absent':
            return value is MISSING and wanted == 'absent'
        if wanted[0] in '=~':
            text = value if isinstance(value, str) else json.dumps(value)
            return text == self.filled(wanted[1:]) if wanted[0] == '=' else re.search(wanted[1:], text) is not None
        kind, _, name = wanted.partition(':')
        if name:
            return (value == self.names.get(name)) == (kind == 'same')
        return kind_of(value) == kind or kind == 'string' and isinstance(value, str)


def faults_of_any(reply, error_names):
    """What SDKs rely on in each answer: JSON, and an error where and only where the status says so."""
    if reply.value is MISSING:
        yield f'no JSON: {reply.text[:60]}'
        return
    if 'application/json' not in reply.headers.get('Content-Type', ''):
        yield 'Content-Type is not application/json'
    if reply.status < 400:
        if reply.member('statusCode') is not MISSING or reply.member('name') is not MISSING:
            yield 'a success has statusCode or name, which SDKs take for an error'
        return
    if reply.member('statusCode') != reply.status:
        yield f"statusCode {reply.member('statusCode')} with status {reply.status}"
    if reply.member('name') not in error_names:
        yield f"no SDK knows the error {reply.member('name')}"
    if reply.member('message') in (MISSING, ''):
        yield 'an error has no message'


def at(value, place):
    """The member at `data.0.id`."""
    for name in str(place).split('.'):
        if isinstance(value, dict):
            value = value.get(name, MISSING)
        elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return MISSING
    return value


def kind_of(value):
    if isinstance(value, str):
        return 'uuid' if UUID.fullmatch(value) else 'time' if TIME.fullmatch(value) else 'string'
    kinds = {bool: 'bool', int: 'int', float: 'number', list: 'array', dict: 'object', type(None): 'null'}
    return kinds[type(value)]


def shape(value):
    """The kinds of a value and of its members; of a list those of its first item, or none."""
    if isinstance(value, dict):
        return {name: shape(each) for name, each in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return 'no JSON' if value is MISSING else kind_of(value)


def is_alike(one, other):
    """Whether two shapes are: an empty list is like any."""
    if isinstance(one, list) and isinstance(other, list):
        return not one or not other or is_alike(one[0], other[0])
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_alike(one[name], other[name]) for name in one)
    return one == other


def play_all(path, ours, other=None):
    """Plays each case to `ours`, and to `other` beside it; returns how many were played, and what was found."""
    with open(path, encoding='utf-8') as file:
        cases = json.load(file)
    for player in filter(None, (ours, other)):
        player.names = {**cases['variables'], **player.names}
    found = []
    for case in cases['cases']:
        replies = ours.play(case)
        found += [f"{case['id']}: {fault}" for fault in ours.faults(case, replies, cases['errorNames'])]
        if other is None:
            continue
        theirs = other.play(case)[0]
        seen = [(reply.status, reply.member('name'), shape(reply.value)) for reply in (replies[0], theirs)]
        if 'known' not in case and not (seen[0][:2] == seen[1][:2] and is_alike(seen[0][2], seen[1][2])):
            found.append(f"{case['id']}: {replies[0].text[:200]} here, {theirs.text[:200]} there")
    return len(cases['cases']), found
