"""Redeems with the Python example what it is asked: for each line of the file REQUESTS, {"action", "token", "code", "copies", "keys"},
it redeems the token that many times at once, and prints a line "RESULT ACCOUNT" for each.

usage: drive.py psycopg2|psycopg REQUESTS
The example is redeeming.py next to this file. The environment has the connection (PGHOST, PGDATABASE, PGUSER).
"""

import importlib
import json
import sys
import threading

import redeeming

library, requests = sys.argv[1:]
connect = importlib.import_module(library).connect


def set_password(cursor, account):
    cursor.execute("INSERT INTO passwords (account) VALUES (%s)", (account,))


def redeem(request, keys, outcomes):
    connection = connect("")
    try:
        if request["action"] == "activation":
            result, account = redeeming.activate(connection, keys, request["token"])
        else:
            result, account = redeeming.recover(connection, keys, request["token"], request["code"], set_password)
        outcomes.append(f"{result} {account or ''}")
    except Exception as error:
        connection.rollback()
        outcomes.append(f"raised {type(error).__name__}")
    finally:
        connection.close()


for line in open(requests):
    request = json.loads(line)
    keys = [redeeming.load_key(file) for file in request["keys"]]
    outcomes = []
    threads = [threading.Thread(target=redeem, args=(request, keys, outcomes)) for _ in range(request["copies"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("\n".join(outcomes), flush=True)
