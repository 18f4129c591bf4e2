#!/usr/bin/python3
"""sqlalchemy_test.py MAILROOM: asks for mails with SQLAlchemy, by the function of docs/messages.md."""

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import BigInteger, Column, Identity, Text, create_engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, declarative_base

from shop import ShopTest, main, run_block

Base = declarative_base()


class Order(Base):
    __tablename__ = 'orders'
    id = Column(BigInteger, Identity(always=True), primary_key=True)
    email = Column(Text, nullable=False)
    total = Column(Text, nullable=False)


class SqlalchemyTest(ShopTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.engine = create_engine(f'postgresql+psycopg2://{cls.app}@/{cls.database.name}')
        cls.send_receipt = staticmethod(run_block('def send_receipt')['send_receipt'])

    @classmethod
    def tearDownClass(cls):
        cls.engine.dispose()
        super().tearDownClass()

    def order_of(self, session, email):
        order = Order(email=email, total='12.00')
        session.add(order)
        session.flush()
        self.send_receipt(session, email, order.id, '12.00')
        return order.id

    def test_an_order_and_its_receipt_are_committed_together(self):
        with Session(self.engine) as session:
            order = self.order_of(session, 'ada@example.org')
            session.commit()
        self.assert_receipt(self.messages()[0], order, reference=False)
        self.assertEqual(self.token_count(), 1)

    def test_a_message_rolls_back_with_its_session(self):
        with Session(self.engine) as session:
            self.order_of(session, 'ada@example.org')
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
            self.order_of(session, 'ada@example.org, eve@example.org')
            session.commit()
        self.assert_rolled_back()

    def test_alembic_generates_nothing_for_mailroom(self):
        with self.engine.connect() as connection:
            changes = compare_metadata(MigrationContext.configure(connection), Base.metadata)
        # It would drop what the models do not have: it sees the tables of the application, and no others.
        self.assertIn('remove_table', [change[0] for change in changes if isinstance(change, tuple)])
        self.assertNotIn('mailroom', repr(changes))

    def test_making_and_dropping_all_tables_leaves_mailroom_alone(self):
        with self.engine.begin() as connection:
            Base.metadata.drop_all(connection)
            Base.metadata.create_all(connection)
        self.assert_mails()


if __name__ == '__main__':
    main()
