#!/usr/bin/python3
"""sqlalchemy_test.py MAILROOM: asks for mails with SQLAlchemy, by the class and the function of docs/messages.md."""

from sqlalchemy import create_engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from shop import ShopTest, main, run_block


class SqlalchemyTest(ShopTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.engine = create_engine(f'postgresql+psycopg2:///{cls.database.name}')
        cls.message = run_block('declarative_base()', __name__='shop_models')['Message']
        cls.send_receipt = staticmethod(run_block('def send_receipt')['send_receipt'])

    @classmethod
    def tearDownClass(cls):
        cls.engine.dispose()
        super().tearDownClass()

    def test_objects_of_a_session_are_messages(self):
        with Session(self.engine) as session:
            message = self.message(recipients=['ada@example.org'], template='receipt', reference='order:17',
                                   data={'order': 17, 'total': '12.00'})
            session.add(message)
            session.add_all(self.message(recipients=[f'user{number}@example.org'], subject='Hello', text='Hello.')
                            for number in range(20))
            session.commit()
            self.assertIsNotNone(message.id)
        messages = self.messages()
        self.assert_receipt(next(each for each in messages if 'reference' in each), 17)
        self.assertEqual(self.token_count(), 21)

    def test_an_explicit_none_is_the_default(self):
        with Session(self.engine) as session:
            session.add(self.message(recipients=['ada@example.org'], template='welcome', data=None, send_after=None))
            session.commit()
        self.assertEqual(self.psql('SELECT data IS NULL FROM mailroom_messages').strip(), 't')

    def test_a_message_rolls_back_with_its_session(self):
        with Session(self.engine) as session:
            session.add(self.message(recipients=['ada@example.org'], template='welcome'))
            session.flush()
            session.rollback()
        self.assert_rolled_back()

    def test_a_key_sends_once(self):
        with Session(self.engine) as session:
            first = self.send_receipt(session, 'ada@example.org', 17, '12.00')
            again = self.send_receipt(session, 'ada@example.org', 17, '12.00')
            session.commit()
        self.assertEqual(first, again)
        self.assert_receipt(self.messages()[0], 17, reference=False)
        self.assertEqual(self.token_count(), 1)

    def test_what_cannot_be_a_mail_is_an_error(self):
        with self.assertRaises(SQLAlchemyError), Session(self.engine) as session:
            session.add(self.message(recipients=[], template='welcome'))
            session.commit()
        self.assertEqual(self.messages(), [])


if __name__ == '__main__':
    main()
