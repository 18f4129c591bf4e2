#!/usr/bin/python3
"""django_test.py MAILROOM: asks for mails with Django, by the functions of docs/messages.md and the backend of examples/django."""

import base64
import io
import logging
import os
import sys
import types
from email.mime.image import MIMEImage

import django
import django.conf
from django.core import mail
from django.core.management import call_command
from django.db import DatabaseError, connection, models, transaction
from django.utils.log import AdminEmailHandler
from django.utils.translation import gettext_lazy

from shop import ROOT, ShopTest, main, run_block

sys.path.append(os.path.join(ROOT, 'examples', 'django', 'shop'))


class DjangoTest(ShopTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        django.conf.settings.configure(
            DATABASES={'default': {'ENGINE': 'django.db.backends.postgresql', 'NAME': cls.database.name, 'USER': cls.app}},
            EMAIL_BACKEND='mailroom_backend.MailroomBackend', ADMINS=[('Ops', 'ops@example.org')], USE_TZ=True, SECRET_KEY='for tests',
            DEFAULT_AUTO_FIELD='django.db.models.BigAutoField')
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

    def test_the_commands_of_django_leave_mailroom_alone(self):
        found = io.StringIO()
        call_command('inspectdb', stdout=found)
        self.assertIn("db_table = 'orders'", found.getvalue())
        self.assertNotIn('mailroom', found.getvalue())
        call_command('dumpdata', stdout=found)
        self.assertNotIn('mailroom', found.getvalue())
        call_command('flush', interactive=False)
        call_command('migrate', run_syncdb=True, verbosity=0)
        self.assert_mails()

    def test_a_mail_to_nobody_is_none(self):
        self.assertEqual(mail.EmailMessage('Hello', 'Hello.', 'shop@example.org', []).send(), 0)
        self.assertEqual(self.messages(), [])

    def test_translated_texts_and_numbers_in_headers_are_texts(self):
        self.assertEqual(mail.EmailMessage(gettext_lazy('Hello'), gettext_lazy('Hello.'), 'shop@example.org', ['ada@example.org'],
                                           headers={'X-Order': 17}).send(), 1)
        self.assertEqual([self.messages()[0][name] for name in ('subject', 'text', 'headers')], ['Hello', 'Hello.', {'X-Order': '17'}])

    def test_many_mails_are_all_taken_or_none(self):
        mails = [('Hello', 'Hello.', 'shop@example.org', [to]) for to in ('ada@example.org', 'no mailbox')]
        with self.assertRaises(django.db.Error):
            mail.send_mass_mail(mails)
        self.assertEqual(self.messages(), [])
        self.assertEqual(mail.send_mass_mail(mails, fail_silently=True), 1)

    def test_parts_that_mailroom_does_not_have_are_refused_by_name(self):
        for change, part in ((lambda m: m.attach('x.eml', mail.EmailMessage(), 'message/rfc822'), 'EmailMessage'),
                             (lambda m: m.attach('a/b.txt', 'x', 'text/plain'), 'attachment'),
                             (lambda m: m.reply_to.extend(['a@example.org', 'b@example.org']), 'a@example.org, b@example.org'),
                             (lambda m: m.extra_headers.update({'From': 'eve@example.org'}), 'From')):
            message = mail.EmailMessage('Hello', 'Hello.', 'shop@example.org', ['ada@example.org'])
            change(message)
            with self.subTest(part), self.assertRaisesRegex(Exception, part):
                message.send()
        self.assertEqual(self.messages(), [])

    def test_a_view_goes_on_after_an_error_report_in_a_failed_transaction(self):
        log = logging.getLogger('view')
        handler = AdminEmailHandler()
        log.addHandler(handler)
        self.addCleanup(log.removeHandler, handler)
        with transaction.atomic():
            try:
                connection.cursor().execute('SELECT 1 / 0')
            except DatabaseError:
                log.exception('handled')

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
