#!/usr/bin/python3
"""django_test.py MAILROOM: asks for mails with Django, by the classes and functions of docs/messages.md."""

import base64
import sys
import types

import django
import django.conf
from django.core import mail
from django.db import IntegrityError, connection, models, transaction

from shop import ShopTest, code_block, main, run_block


class DjangoTest(ShopTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        django.conf.settings.configure(
            DATABASES={'default': {'ENGINE': 'django.db.backends.postgresql', 'NAME': cls.database.name}},
            EMAIL_BACKEND='mailroom_backend.MailroomBackend', USE_TZ=True, DEFAULT_AUTO_FIELD='django.db.models.BigAutoField')
        django.setup()
        backend = types.ModuleType('mailroom_backend')
        exec(code_block('python', 'class MailroomBackend'), vars(backend))
        sys.modules['mailroom_backend'] = backend

        class Order(models.Model):
            email = models.TextField()
            total = models.TextField()

            class Meta:
                app_label = 'shop'
                managed = False
                db_table = 'orders'

        cls.order = Order
        cls.message = run_block('class Message(models.Model)', __name__='shop_models')['Message']

    @classmethod
    def tearDownClass(cls):
        connection.close()
        super().tearDownClass()

    def test_an_order_and_its_receipt_are_committed_together(self):
        order_class = self.order

        class Orders:
            class objects:  # noqa: N801: the manager of the document's Order, whose user is a column here
                @staticmethod
                def create(user, total):
                    return order_class.objects.create(email=user.email, total=total)

        place_order = run_block('@transaction.atomic', Order=Orders)['place_order']
        ada = types.SimpleNamespace(email='ada@example.org')
        order = place_order(ada, '12.00')
        self.assert_receipt(self.messages()[0], order.pk)
        self.psql('TRUNCATE orders, mailroom_messages, tokens CASCADE')
        with self.assertRaises(ZeroDivisionError), transaction.atomic():
            place_order(ada, '12.00')
            raise ZeroDivisionError
        self.assert_rolled_back()

    def test_send_mail_of_django_is_a_message(self):
        mail.send_mail('Grüße', 'Hello.\n', 'Shop <shop@example.org>', ['ada@example.org', 'Bob <bob@example.org>'],
                       html_message='<p>Hello.</p>')
        message = self.messages()[0]
        self.assertEqual(message['recipients'], ['ada@example.org', 'Bob <bob@example.org>'])
        self.assertEqual([message[name] for name in ('subject', 'text', 'html', 'sender')],
                         ['Grüße', 'Hello.\n', '<p>Hello.</p>', 'Shop <shop@example.org>'])
        self.assertEqual(self.token_count(), 2)

    def test_send_mail_of_django_rolls_back(self):
        with self.assertRaises(ZeroDivisionError), transaction.atomic():
            mail.send_mail('Hello', 'Hello.', 'shop@example.org', ['ada@example.org'])
            raise ZeroDivisionError
        self.assert_rolled_back()

    def test_a_mail_with_all_that_django_knows(self):
        message = mail.EmailMultiAlternatives(
            'Hello', 'Hello.', 'shop@example.org', ['ada@example.org'], bcc=['archive@example.org'], cc=['bob@example.org'],
            reply_to=['help@example.org'], headers={'X-Order': '17'})
        message.attach('invoice.pdf', b'%PDF\x00', 'application/pdf')
        message.attach('notes.txt', 'Zwölf', 'text/plain')
        self.assertEqual(message.send(), 1)
        found = self.messages()[0]
        self.assertEqual([found[name] for name in ('cc', 'bcc', 'reply_to', 'headers')],
                         [['bob@example.org'], ['archive@example.org'], 'help@example.org', {'X-Order': '17'}])
        files = self.psql("SELECT name, content_type, encode(content, 'base64') FROM mailroom_attachments ORDER BY place")
        self.assertEqual([line.split('\t') for line in files.splitlines()],
                         [['invoice.pdf', 'application/pdf', base64.b64encode(b'%PDF\x00').decode()],
                          ['notes.txt', 'text/plain', base64.b64encode('Zwölf'.encode()).decode()]])

    def test_rows_of_the_model_are_messages(self):
        created = self.message.objects.create(recipients=['ada@example.org'], template='receipt',
                                              data={'order': 17, 'total': '12.00'}, reference='order:17')
        self.assertIsNotNone(created.pk)
        self.assert_receipt(self.messages()[0], 17)
        self.message.objects.bulk_create(
            self.message(recipients=[f'user{number}@example.org'], template='newsletter') for number in range(100))
        self.assertEqual(self.token_count(), 101)

    def test_what_cannot_be_a_mail_is_an_error(self):
        with self.assertRaises((IntegrityError, django.db.Error)), transaction.atomic():
            self.message.objects.create(recipients=['no mailbox'], template='receipt')
        self.assertEqual(self.messages(), [])


if __name__ == '__main__':
    main()
