#!/usr/bin/python3
"""django_test.py MAILROOM: asks for mails with Django, by the functions of docs/messages.md and the backend of examples/django."""

import base64
import os
import sys
import types
from email.mime.image import MIMEImage

import django
import django.conf
from django.core import mail
from django.db import DatabaseError, connection, models, transaction

from shop import ROOT, ShopTest, main, run_block

sys.path.append(os.path.join(ROOT, 'examples', 'django', 'shop'))


class DjangoTest(ShopTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        django.conf.settings.configure(
            DATABASES={'default': {'ENGINE': 'django.db.backends.postgresql', 'NAME': cls.database.name, 'USER': cls.app}},
            EMAIL_BACKEND='mailroom_backend.MailroomBackend', ADMINS=[('Ops', 'ops@example.org')], USE_TZ=True, DEFAULT_AUTO_FIELD='django.db.models.BigAutoField')
        django.setup()

        class Order(models.Model):
            email = models.TextField()
            total = models.TextField()

            class Meta:
                app_label = 'shop'
                managed = False
                db_table = 'orders'

        cls.order = Order

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
        self.psql('TRUNCATE orders, mailroom.mailroom_messages, mailroom.tokens CASCADE')
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
        files = self.psql("SELECT name, content_type, encode(content, 'base64') FROM mailroom.mailroom_attachments ORDER BY place")
        self.assertEqual([line.split('\t') for line in files.splitlines()],
                         [['invoice.pdf', 'application/pdf', base64.b64encode(b'%PDF\x00').decode()],
                          ['notes.txt', 'text/plain', base64.b64encode('Zwölf'.encode()).decode()]])

    def test_what_cannot_be_a_mail_is_an_error(self):
        with self.assertRaises(django.db.Error):
            mail.send_mail('Hello', 'Hello.', 'shop@example.org', ['no mailbox'])
        self.assertEqual(self.messages(), [])

    def test_what_the_backend_does_not_take_is_refused_by_name(self):
        invitation = mail.EmailMultiAlternatives('Hello', 'Hello.', 'shop@example.org', ['ada@example.org'])
        invitation.attach_alternative('BEGIN:VCALENDAR', 'text/calendar; method=REQUEST')
        logo = mail.EmailMessage('Hello', 'Hello.', 'shop@example.org', ['ada@example.org'])
        logo.attach(MIMEImage(b'\x89PNG', 'png'))
        for message, part in ((invitation, 'text/calendar'), (logo, 'MIMEImage')):
            with self.assertRaisesRegex(ValueError, part):
                message.send()
        self.assertEqual(self.messages(), [])

    def test_fail_silently_leaves_the_transaction_whole(self):
        with transaction.atomic():
            self.assertEqual(mail.send_mail('Hello', 'Hello.', 'shop@example.org', ['no mailbox'], fail_silently=True), 0)
            self.assertEqual(mail.send_mail('Hello', 'Hello.', 'shop@example.org', ['ada@example.org']), 1)
        self.assertEqual(len(self.messages()), 1)

    def test_an_error_report_in_a_transaction_that_failed_is_no_second_error(self):
        with self.assertRaises(DatabaseError), transaction.atomic():
            try:
                connection.cursor().execute('SELECT 1 / 0')
            except DatabaseError:
                mail.mail_admins('Error', 'It failed.', fail_silently=True)
                raise
        self.assertEqual(self.messages(), [])


if __name__ == '__main__':
    main()
