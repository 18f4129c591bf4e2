#!/usr/bin/python3
"""tracing_test.py MAILROOM: the code of docs/tracing.md, in Python and in Node with the library of OpenTelemetry; from the span of the
request to those of its mail at a collector of traces, which are checked by the types of @opentelemetry/otlp-transformer."""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

DIRECTORY = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path += [os.path.join(DIRECTORY, '..', 'producers')]
from shop import ShopTest, code_block, main  # noqa: E402

# scripts/install-packages --tests fills the first, from package-lock.json, and the last for a Node.js that is not Debian's.
MODULES = '/usr/local/share/mailroom-tests/tracing/node_modules:/usr/share/nodejs:/usr/local/share/nodejs'
REQUEST = """
const { NodeTracerProvider, SimpleSpanProcessor, InMemorySpanExporter } = require('@opentelemetry/sdk-trace-node');
const { trace } = require('@opentelemetry/api');
const { Pool } = require('pg');
const kept = new InMemorySpanExporter();
new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(kept)] }).register();
(async () => {
  const pool = new Pool();
  await trace.getTracer('shop').startActiveSpan('POST /orders', async (span) => {
    await sendReceipt(pool, process.argv[1], 17);
    span.end();
  });
  await sendReceipt(pool, process.argv[2], 18); // in no span
  await pool.end();
  const { traceId, spanId } = kept.getFinishedSpans()[0].spanContext();
  console.log(JSON.stringify({ traceId, spanId }));
})();
"""


class FakeSpan:
    """What the code of the document needs of a span of OpenTelemetry in Python, which Debian has no package of."""
    trace_id, span_id, trace_flags = 0x0af7651916cd43dd8448eb211c80319c, 0xb7ad6b7169203331, 1

    def get_span_context(self):
        return self


class TracingTest(ShopTest):
    def setUp(self):
        super().setUp()
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.taken = os.path.join(self.directory.name, 'taken')
        server = subprocess.Popen([sys.executable, os.path.join(DIRECTORY, '..', 'handover', 'trace_server.py'), self.directory.name, 'ok'])
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.port = self.wait_for(os.path.join(self.directory.name, 'port'))

    def wait_for(self, path):
        for _ in range(1000):
            if os.path.exists(path):
                with open(path, encoding='utf-8') as file:
                    return file.read().strip()
            time.sleep(0.01)
        return self.fail(f'no {path}')

    def spans(self, **environment):
        """Hands all messages to a program, and returns the spans of that."""
        program = f"{os.path.join(DIRECTORY, '..', 'handover', 'child.py')} {self.directory.name}/lines ok"
        subprocess.run([self.mailroom, 'collect', '--once', '--format', 'jsonl', '--exec', program], check=True,
                       env=dict(os.environ, MAILROOM_DATABASE_URL=f'dbname={self.database.name}', MAILROOM_DATABASE_SCHEMA='mailroom',
                                MAILROOM_SECRET_KEY='a' * 64, MAILROOM_TRACE_ENDPOINT=f'http://127.0.0.1:{self.port}', **environment))
        with open(self.taken, encoding='utf-8') as file:
            requests = [json.loads(line) for line in file]
        return [span for request in requests for span in request['resourceSpans'][0]['scopeSpans'][0]['spans']]

    def assert_joined(self, spans, trace_id, span_id):
        """All spans of the trace are below the span of the request, and the claim is linked to it."""
        of_trace = [span for span in spans if span['traceId'] == trace_id]
        self.assertEqual(sorted(span['name'].split()[0] for span in of_trace), ['carry', 'enqueue', 'render'])
        known = {span_id} | {span['spanId'] for span in of_trace}
        for span in of_trace:
            self.assertIn(span['parentSpanId'], known)
        carry = next(span for span in of_trace if span['name'].startswith('carry'))
        self.assertEqual(carry['parentSpanId'], span_id)
        claims = [span for span in spans if span['name'].startswith('claim')]
        self.assertIn((trace_id, span_id), [(link['traceId'], link['spanId']) for claim in claims for link in claim['links']])

    def node(self, *arguments):
        ended = subprocess.run(['node', *arguments], env=dict(os.environ, PGDATABASE=self.database.name, NODE_PATH=MODULES), text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if ended.returncode != 0:
            self.fail(f'{ended.stdout}{ended.stderr}\nhint: scripts/install-packages --tests installs Node.js and its modules')
        return ended.stdout

    def test_node(self):
        parent = json.loads(self.node('-e', code_block('js', 'propagation', 'docs/tracing.md') + REQUEST, '--', 'ada@example.org', 'bob@example.org'))
        spans = self.spans(MAILROOM_TRACE_SAMPLE='0')
        self.assert_joined(spans, parent['traceId'], parent['spanId'])
        self.assertEqual(len(spans), 4)
        self.node(os.path.join(DIRECTORY, 'check_types.js'), self.taken)

    def test_python(self):
        try:
            import psycopg
        except ImportError:
            self.fail('hint: scripts/install-packages --tests installs python3-psycopg')
        names = {}
        exec(code_block('python', 'traceparent_of', 'docs/tracing.md'), names)
        with psycopg.connect(f'dbname={self.database.name}', autocommit=True) as connection:
            names['sign_up'](connection, FakeSpan(), 'ada@example.org')
            connection.execute("SELECT mailroom.mailroom_send(ARRAY['bob@example.org'], template => 'welcome')")
        spans = self.spans()
        self.assert_joined(spans, '0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331')
        self.assertEqual(len({span['traceId'] for span in spans if span['name'].startswith('carry')}), 2)
        self.node(os.path.join(DIRECTORY, 'check_types.js'), self.taken)


if __name__ == '__main__':
    main()
