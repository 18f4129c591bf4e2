-- Outcomes that an application is told of.
--
-- Creates a table, and adds a column to mailroom_home, which has one row: locks nothing for longer than an instant.

CREATE TABLE mailroom_outcomes (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    queue      text NOT NULL,
    token      bigint NOT NULL,
    state      text NOT NULL,
    address    text,
    code       integer,
    reply      text,
    attempts   integer NOT NULL DEFAULT 0,
    not_before timestamptz
);
COMMENT ON TABLE mailroom_outcomes IS 'what became of tokens, until mailroom outcomes has told the application; empty unless that is wanted';
COMMENT ON COLUMN mailroom_outcomes.attempts IS 'how often the application was told, and refused it';

ALTER TABLE mailroom_home ADD COLUMN outcomes_since timestamptz;
COMMENT ON COLUMN mailroom_home.outcomes_since IS 'since then outcomes are kept for mailroom outcomes; null: they are not';
