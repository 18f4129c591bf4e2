#!/usr/bin/python3
"""django_test.py MAILROOM: asks for mails with Django, by the functions of docs/messages.md and the backend of examples/django."""

import io
import logging
import os
import sys
import types
from email.mime.image import MIMEImage
from email.mime.text import MIMEText
from email.utils import parseaddr

import django
import django.conf
from django.core import mail
from django.core.mail import EmailMessage, EmailMultiAlternatives
from django.core.mail.message import sanitize_address
from django.core.management import call_command
from django.db import DatabaseError, connection, models, transaction
from django.utils.log import AdminEmailHandler
from django.utils.translation import gettext_lazy

from shop import ROOT, ShopTest, main, run_block

sys.path.append(os.path.join(ROOT, 'examples', 'django', 'shop'))


def django_mails():
    """What programs make with Django, by name."""
    def mail_of(name, body='Hello.', kind=EmailMessage, subject='Hello', to=('Ada <ada@example.org>',), **more):
        message = kind(subject, body, 'Shop <shop@example.org>', to, **more)
        return name, message

    yield mail_of('a text')
    yield mail_of('translated texts', gettext_lazy('Hello.'), subject=gettext_lazy('Hello'), headers={'X-Order': 17})
    yield mail_of('a text in UTF-8', 'Zwölf Öl\n.\n..\n', subject='Grüße')
    yield mail_of('a long line', 'x' * 5000)
    yield mail_of('an empty text', '')
    yield mail_of('line ends of three kinds', 'a\nb\r\nc')
    yield mail_of('a long subject', subject='Ein sehr langer Betreff mit Größe ' * 12)
    yield mail_of('copies', cc=['bob@example.org'], bcc=['archive@example.org'])
    yield mail_of('names in UTF-8', to=('Zoë <zoe@example.org>', '"Doe, Jo" <jo@example.org>'))
    yield mail_of('an international domain', to=('ada@bücher.example',))
    yield mail_of('headers', reply_to=['help@example.org', 'Desk <desk@example.org>'],
                  headers={'X-Order': '17', 'List-Unsubscribe': '<https://example.org/u>', 'Message-ID': '<1@example.org>'})
    yield mail_of('a From of its own', headers={'From': 'Other <other@example.org>'})
    html = mail_of('HTML alone', '<p>Hello.</p>')
    html[1].content_subtype = 'html'
    yield html
    both = mail_of('text and HTML', kind=EmailMultiAlternatives)
    both[1].attach_alternative('<p>Zwölf.</p>', 'text/html')
    yield both
    invitation = mail_of('an invitation', kind=EmailMultiAlternatives)
    invitation[1].attach_alternative('<p>Come.</p>', 'text/html')
    invitation[1].attach_alternative('BEGIN:VCALENDAR', 'text/calendar; method=REQUEST')
    yield invitation
    files = mail_of('files')
    files[1].attach('invoice.pdf', b'%PDF\x00\xff', 'application/pdf')
    files[1].attach('Übersicht.txt', 'Zwölf', 'text/plain')
    files[1].attach('latin.txt', b'Zw\xf6lf', 'text/plain')
    files[1].attach(None, 'no name', 'text/csv')
    yield files
    logo = mail_of('an image that the HTML shows', kind=EmailMultiAlternatives)
    logo[1].attach_alternative('<img src="cid:logo">', 'text/html')
    logo[1].mixed_subtype = 'related'
    image = MIMEImage(b'\x89PNG', 'png')
    image.add_header('Content-ID', '<logo>')
    logo[1].attach(image)
    yield logo
    forwarded = mail_of('a mail within a mail')
    forwarded[1].attach('old.eml', EmailMessage('Old', 'Zwölf', 'eve@example.org', ['shop@example.org']).message(), 'message/rfc822')
    forwarded[1].attach(MIMEText('a part of its own'))
    yield forwarded
    latin = mail_of('another charset', 'Zwölf')
    latin[1].encoding = 'iso-8859-1'
    yield latin


class DjangoTest(ShopTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.psql(f'GRANT {cls.database.name}_submitter TO {cls.app}')
        django.conf.settings.configure(
            DATABASES={'default': {'ENGINE': 'django.db.backends.postgresql', 'NAME': cls.database.name, 'USER': cls.app}},
            EMAIL_BACKEND='mailroom_backend.MailroomBackend', ADMINS=[('Ops', 'ops@example.org')],
            MANAGERS=[('Boss', 'boss@example.org')], USE_TZ=True, SECRET_KEY='for tests',
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

    def stored(self):
        """Envelope sender, recipients and bytes of all messages, oldest first."""
        rows = self.psql("SELECT coalesce(return_path, '-'), array_to_string(recipients, ' '), encode(raw, 'hex') FROM "
                         'mailroom.mailroom_messages ORDER BY id')
        return [(sender, to.split(), bytes.fromhex(raw)) for sender, to, raw in (row.split('\t') for row in rows.splitlines())]

    def test_the_bytes_of_a_mail_are_what_django_makes(self):
        for name, message in django_mails():
            with self.subTest(name=name):
                self.psql('TRUNCATE mailroom.mailroom_messages, mailroom.tokens CASCADE')
                # Each call would draw another Message-ID and boundary.
                made = message.message()
                message.message = lambda made=made: made
                self.assertEqual(message.send(), 1)
                ((sender, to, raw),) = self.stored()
                self.assertEqual(raw, made.as_bytes(linesep='\r\n'))
                self.assertEqual(to, [parseaddr(sanitize_address(each, 'utf-8'))[1] for each in message.recipients()])
                self.assertEqual(sender, 'shop@example.org')
                self.assertNotIn(b'archive@', raw)
                self.assertEqual(self.token_count(), len(to))

    def test_the_mails_that_django_itself_sends(self):
        mail.send_mail('Hello', 'Hello.\n', 'Shöp <shop@example.org>', ['ada@example.org', 'Bob <bob@example.org>'], html_message='<p>Hi.</p>')
        self.assertEqual(mail.send_mass_mail([(str(i), 'Hello.', None, ['ada@example.org']) for i in range(3)]), 3)
        mail.mail_admins('Error', 'It failed.', html_message='<p>It failed.</p>')
        mail.mail_managers('Note', 'Look.')
        EmailMultiAlternatives('Password reset', 'Click.', None, ['ada@example.org']).send()
        found = self.stored()
        self.assertEqual([sender for sender, _, _ in found], ['shop@example.org'] + 6 * ['-'])
        self.assertEqual([to for _, to, _ in found], [['ada@example.org', 'bob@example.org']] + 3 * [['ada@example.org']] +
                         [['ops@example.org'], ['boss@example.org'], ['ada@example.org']])

    def test_send_mail_of_django_rolls_back(self):
        with self.assertRaises(ZeroDivisionError), transaction.atomic():
            mail.send_mail('Hello', 'Hello.', 'shop@example.org', ['ada@example.org'])
            raise ZeroDivisionError
        self.assert_rolled_back()

    def test_a_mail_to_nobody_is_none(self):
        self.assertEqual(mail.send_mail('Hello', 'Hello.', 'shop@example.org', []), 0)
        self.assertEqual(EmailMultiAlternatives('Hello', 'Hello.', 'shop@example.org').send(), 0)
        self.assertEqual(self.stored(), [])

    def test_what_cannot_be_a_mail_is_an_error(self):
        with self.assertRaises((django.db.Error, ValueError)):
            mail.send_mail('Hello', 'Hello.', 'shop@example.org', ['no mailbox'])
        with self.assertRaises(mail.BadHeaderError):
            mail.send_mail('Hello\nBcc: eve@example.org', 'Hello.', 'shop@example.org', ['ada@example.org'])
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

    def test_many_mails_are_all_taken_or_none(self):
        mails = [('Hello', 'Hello.', 'shop@example.org', [to]) for to in ('ada@example.org', 'no mailbox')]
        with self.assertRaises(django.db.Error):
            mail.send_mass_mail(mails)
        self.assertEqual(self.messages(), [])
        self.assertEqual(mail.send_mass_mail(mails, fail_silently=True), 1)

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
