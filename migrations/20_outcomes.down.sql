-- Forgets outcomes that no application was told of.
--
-- deletes: column mailroom_home.outcomes_since
-- deletes: table mailroom_outcomes

ALTER TABLE mailroom_home DROP COLUMN outcomes_since;
DROP TABLE mailroom_outcomes;
