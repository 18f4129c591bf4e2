#!/usr/bin/python3
"""A sender for `mailroom collect --exec examples/senders/sender.py`: appends each token to a file, and acknowledges it.
Replace deliver() by your own: it returns when a token is delivered, or raises an error."""
import json, os, sys

def deliver(token, path=os.environ.get("SENDER_OUTPUT", "sent.jsonl")):
    with open(path, "a") as file:
        file.write(json.dumps(token) + "\n")

answers = os.fdopen(3, "w", buffering=1)  # a line at a time
for line in sys.stdin:
    batch, attempt, body = line.split(" ", 2)  # from its second attempt on, you may have the batch already
    for token in json.loads(body)["tokens"]:
        try:
            deliver(token)
        except ValueError as error:  # will never work
            print("fail", batch, token["id"], "reject", str(error), file=answers)
        except OSError as error:  # may work later
            print("fail", batch, token["id"], "retry", str(error), file=answers)
    print("ok", batch, file=answers)
