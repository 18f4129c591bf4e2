#!/usr/bin/python3
"""psycopg_test.py MAILROOM: asks for mails with psycopg 3, by the functions of docs/messages.md."""

import psycopg

from shop import ShopTest, main, run_block


class PsycopgTest(ShopTest):
    def connect(self):
        return psycopg.connect(dbname=self.database.name, user=self.app)

    def test_an_order_and_its_receipt_are_committed_together(self):
        place_order = run_block('with connection.transaction():\n        order')['place_order']
        with self.connect() as connection:
            order = place_order(connection, 'ada@example.org', '12.00')
        self.assert_receipt(self.messages()[0], order)
        self.assertEqual(self.token_count(), 1)

    def test_a_receipt_rolls_back_with_its_order(self):
        place_order = run_block('with connection.transaction():\n        order')['place_order']
        with self.assertRaises(ZeroDivisionError), self.connect() as connection, connection.transaction():
            place_order(connection, 'ada@example.org', '12.00')
            raise ZeroDivisionError
        self.assert_rolled_back()

    def test_what_cannot_be_a_mail_stops_the_order(self):
        place_order = run_block('with connection.transaction():\n        order')['place_order']
        with self.assertRaises(psycopg.errors.Error), self.connect() as connection:
            place_order(connection, 'ada@example.org, eve@example.org', '12.00')
        self.assert_rolled_back()

    def test_copy_asks_for_many_mails(self):
        send = run_block('cursor.copy')['send_newsletter']
        people = [(f'user{number}@example.org', f'Üser "{number}"\t') for number in range(1000)]
        with self.connect() as connection:
            send(connection, 'newsletter', people)
        found = [(message['recipients'][0], message['data']['name']) for message in self.messages()]
        self.assertEqual(found, people)
        self.assertEqual(self.token_count(), 1000)


if __name__ == '__main__':
    main()
