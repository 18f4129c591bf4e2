"""Redeems TOKEN with the Python example, COPIES times at once, and prints a line "RESULT ACCOUNT" for each.

usage: drive.py psycopg2|psycopg ACTION TOKEN CODE COPIES KEY_FILE...
The example is redeeming.py next to this file. The environment has the connection (PGHOST, PGDATABASE, PGUSER).
"""

import importlib
import sys
import threading

import redeeming

library, action, token, code, copies, *key_files = sys.argv[1:]
connect = importlib.import_module(library).connect
keys = [redeeming.load_key(file) for file in key_files]
outcomes = []


def set_password(cursor, account):
    cursor.execute("INSERT INTO passwords (account) VALUES (%s)", (account,))


def redeem():
    connection = connect("")
    try:
        if action == "activation":
            result, account = redeeming.activate(connection, keys, token)
        else:
            result, account = redeeming.recover(connection, keys, token, code, set_password)
        outcomes.append(f"{result} {account or ''}")
    except Exception as error:
        connection.rollback()
        outcomes.append(f"raised {type(error).__name__}")
    finally:
        connection.close()


threads = [threading.Thread(target=redeem) for _ in range(int(copies))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("\n".join(outcomes))
