-- Forgets where the schema lives: a copy mails again.
--
-- deletes: table mailroom_home

DROP TABLE mailroom_home;
