#!/usr/bin/node
// A sender for `mailroom collect --exec examples/senders/sender.mjs`: appends each token to a file, and acknowledges it.
// Replace deliver() by your own: it returns when a token is delivered, or throws an error.
import { appendFileSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";

const output = process.env.SENDER_OUTPUT ?? "sent.jsonl";
const deliver = async (token) => appendFileSync(output, JSON.stringify(token) + "\n");

for await (const line of createInterface({ input: process.stdin })) {
  // From its second attempt on, you may have the batch already.
  const [, batch, attempt, body] = /^(\S+) (\d+) (.*)$/.exec(line);
  for (const token of JSON.parse(body).tokens) {
    await deliver(token).catch((error) => {
      const what = error.code === "ENOSPC" ? "retry" : "reject";
      writeSync(3, `fail ${batch} ${token.id} ${what} ${error.message}\n`);
    });
  }
  writeSync(3, `ok ${batch}\n`);
}
